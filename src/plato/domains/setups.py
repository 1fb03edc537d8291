"""Named setups: one TOML file each, shipped with the package or written by a user."""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from plato.configuration import from_mapping, read_toml, to_mapping, to_toml
from plato.domains.wildfire.config import WildfireConfig
from plato.errors import PlatoError
from plato.files import write_text

DOMAINS = {"wildfire": WildfireConfig}


@dataclass(frozen=True)
class Setup:
    """A configuration and the name it goes by."""

    name: str
    config: WildfireConfig


def setup_names() -> list[str]:
    """The setups that come with the package: native, as the text has them, transfer."""
    names = [path.name.removesuffix(".toml") for path in _shipped().iterdir()]
    return sorted(names, key=lambda n: (n.count("-") > 2, n.endswith("transfer"), n))


def load_setup(name: str | Path) -> Setup:
    """A shipped setup by its name, or any other by the path of its TOML file."""
    path = Path(name)
    if path.suffix == ".toml":
        return Setup(path.stem, read_setup(path))
    if str(name) not in setup_names():
        raise PlatoError(
            f"There is no setup named {str(name)!r}; `plato setups` lists them, and a "
            f"path ending in .toml names a file of your own."
        )
    return Setup(str(name), read_setup(Path(str(_shipped() / f"{name}.toml"))))


def read_setup(path: Path) -> WildfireConfig:
    """Reads and checks the TOML file of a setup."""
    data = read_toml(path)
    domain = data.pop("domain", None)
    if not isinstance(domain, str) or domain not in DOMAINS:
        raise PlatoError(
            f"{path}: domain is {domain!r}; set it to one of: {', '.join(DOMAINS)}."
        )
    try:
        return from_mapping(DOMAINS[domain], data)
    except PlatoError as error:
        raise PlatoError(f"{path}: {error}") from None


def setup_toml(config: WildfireConfig) -> str:
    """The TOML text of a setup; reading it gives the same configuration back."""
    data = to_mapping(config)
    # What a reader wants first comes first.
    front = ("description", "evidence", "max_steps")
    ordered = {"domain": "wildfire"} | {k: data.pop(k) for k in front} | data
    return to_toml(ordered)


def write_setup(path: Path, config: WildfireConfig) -> None:
    """Writes the TOML file of a setup."""
    write_text(path, setup_toml(config))


def _shipped():
    return resources.files("plato.domains.wildfire") / "setups"
