"""Everything that the guides show is run, and compared."""

import pytest

from shown_pages import ROOT, Ran, run_pages, steps_of

GUIDES = sorted((ROOT / "docs" / "howto").glob("*.md"))
PAGES = (
    *(path.relative_to(ROOT).as_posix() for path in GUIDES),
    *("docs/adapters.md", "docs/baselines.md", "docs/game.md"),
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> dict[str, Ran]:
    return run_pages(PAGES, tmp_path_factory.mktemp)


@pytest.mark.parametrize(
    "place", [step.place for page in PAGES for step in steps_of(page)]
)
def test_what_is_shown_runs_and_prints_what_is_shown(ran, place):
    ran[place].check()


def test_guides_are_shown():
    assert len(GUIDES) > 6
