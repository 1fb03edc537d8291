"""The documentation: it builds, its links lead somewhere, it works from disk."""

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import plato
from plato.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\[`[^`]+`\]\((\.\./[^)]+)\)((?:,? `\w+`)+)")
BUILD = ("mkdocs", "build", "--strict", "--site-dir")


class Html(HTMLParser):
    """Where a page leads, what it loads, and what in it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(found["href"])
        elif "src" in found:
            self.loads.append(found["src"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The site, built."""
    made = tmp_path_factory.mktemp("site")
    built = build(ROOT, made)
    assert built.returncode == 0, built.stderr
    return made


@pytest.fixture(scope="module")
def site(folder) -> dict[Path, Html]:
    """Its pages."""
    return {
        path.relative_to(folder): Html(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
    }


def build(where: Path, to: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *BUILD, str(to)],
        cwd=where,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_link_of_the_site_leads_somewhere(folder, site):
    wrong = []
    for page, html in site.items():
        for link in html.links:
            parts = urlsplit(link)
            # The page for what is not found is served from anywhere.
            if parts.scheme or page.name == "404.html":
                continue
            target = page
            if parts.path:
                target = Path(os.path.normpath(page.parent / unquote(parts.path)))
            if target not in site:
                if not (folder / target).is_file():
                    wrong.append(f"{page}: {link}")
            elif parts.fragment and unquote(parts.fragment) not in site[target].anchors:
                wrong.append(f"{page}: {link}")
    assert wrong == []
    assert len(site) > 30


def test_the_site_loads_nothing_from_elsewhere(folder, site):
    for page, html in site.items():
        for load in html.loads:
            assert not urlsplit(load).scheme.startswith("http"), f"{page}: {load}"
            assert not load.startswith("//"), f"{page}: {load}"
    for style in folder.rglob("*.css"):
        assert not re.search(r"(url\(|@import )\W*(https?:)?//", style.read_text())


def test_the_reference_has_every_public_name_and_command(folder, site):
    index = site[Path("reference/index.html")]
    for name, home in plato._HOMES.items():
        assert any(link.endswith(f"#{home}.{name}") for link in index.links), name
    page = (folder / "reference/commands.html").read_text(encoding="utf-8")
    commands = re.sub(r"<[^>]*>", "", page)
    for name in COMMANDS:
        assert f"plato {name} --help" in commands, name
    assert "--neighbours" in commands  # of a baseline


def test_braces_are_text(folder):
    """Some extensions of Markdown take them for attributes."""
    page = (folder / "contradictions.html").read_text(encoding="utf-8")
    assert "θ = {MLP_S, MLP_X, W_K, W_q}" in page


def test_broken_links_break_the_build(tmp_path):
    """Of a page, of an anchor, and of a source file."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("src", "tests", "benchmarks", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    links = ("nowhere.md", "game.md#nowhere", "../src/plato/nowhere.py")
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n\n" + " ".join(f"[x]({link})" for link in links) + "\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode != 0
    for link in links:
        assert link in built.stderr
    assert built.stderr.count("WARNING") == len(links)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_the_repository_lead_somewhere(page):
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = page.parent / parts.path if parts.path else page
        assert target.exists(), link
        if parts.fragment:
            assert parts.fragment in headings(target), link


def headings(page: Path) -> set[str]:
    """The anchors that a repository's page gives to headings."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in found]
    return {heading.replace(" ", "-") for heading in kept}


def test_names_beside_files_are_in_them():
    """From the paper to the code: no name that is not there."""
    page = ROOT / "docs" / "paper.md"
    found = NAMED.findall(page.read_text(encoding="utf-8"))
    assert len(found) > 70
    for path, names in found:
        text = (page.parent / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^ *(def |class |){name}\b", text, re.M), (path, name)


def test_every_page_is_in_the_navigation():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in settings, page


SIZES = ((1280, 800), (390, 844))


@pytest.mark.parametrize("size", SIZES, ids=["desktop", "phone"])
def test_it_works_from_disk(browser, folder, size):
    """Opened as a file: nothing to complain about, no network, and search finds."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.resize(*size)
    browser.prefer(prefers_color_scheme="light")
    browser.open(folder / "index.html")
    browser.run("document.querySelector('#__search').click()")
    browser.run(
        "(() => { const box = document.querySelector('.md-search__input');"
        "box.focus(); box.value = 'masked_softmax';"
        "box.dispatchEvent(new Event('keyup', {bubbles: true}));"
        "box.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    browser.until("document.querySelector('.md-search-result__item a')")
    found = browser.run("document.querySelector('.md-search-result__item a').href")
    assert "reference/plato.html" in found
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    for page in ("index.html", "tutorial.html", "paper.html", "reference/runs.html"):
        browser.open(folder / page)
        assert browser.run(wide), page
    assert browser.complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests)
