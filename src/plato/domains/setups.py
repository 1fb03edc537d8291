"""Named setups: TOML files, shipped with the package or written by a user, and games of
one's own in Python."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plato.configuration import from_mapping, read_toml, to_mapping, to_toml
from plato.domains.wildfire.config import WildfireConfig
from plato.errors import PlatoError
from plato.files import write_text

if TYPE_CHECKING:  # heavy, and not needed to read a file
    from plato.game import Game

DOMAINS = {"wildfire": WildfireConfig}


class Rows(NamedTuple):
    """How much room a game is given."""

    agents: int
    tasks: int


@dataclass(frozen=True)
class Setup:
    """What can be played, and the name it goes by."""

    name: str
    content: "WildfireConfig | Game[Any, Any]"
    """A configuration of wildfire, or a game as it is."""

    @property
    def config(self) -> WildfireConfig:
        """The configuration of a wildfire; refused for a game of one's own."""
        if not isinstance(self.content, WildfireConfig):
            raise PlatoError(
                f"{self.name} is not a wildfire; the paper's noise, other maps, the "
                f"optimum, bounds and replays are there for wildfires alone."
            )
        return self.content

    @property
    def rows(self) -> Rows:
        """The room that it needs."""
        if isinstance(self.content, WildfireConfig):
            config = self.content
            return Rows(len(config.agent.agents), len(config.fire_cells))
        return Rows(*self.content.capacity[:2])

    @property
    def digest(self) -> str:
        """The same for what is the same game, whatever it is called.

        Of a game of one's own, its code is part.
        """
        if isinstance(self.content, WildfireConfig):
            words = {"description": None, "evidence": None}
            text = json.dumps(to_mapping(self.content) | words, sort_keys=True)
            return hashlib.sha256(text.encode()).hexdigest()[:12]
        from plato.domains.own import own_digest

        return own_digest(self.content)

    def form(self, room: Rows) -> tuple[Any, ...]:
        """The structure and shapes of its arrays, with that room where it can have it.

        Games of one form can be stacked.
        """
        import jax

        game = self.game(room if isinstance(self.content, WildfireConfig) else None)
        leaves = jax.tree.leaves(game)
        return jax.tree.structure(game), [jax.numpy.shape(leaf) for leaf in leaves]

    @property
    def public(self) -> list[bool]:
        """Which features of an agent the others see, when an episode begins."""
        import jax

        first = jax.jit(lambda game: game.reset(jax.random.key(0))[1].public)
        return first(self.game()).tolist()

    @property
    def shipped(self) -> bool:
        """Whether it comes with the package: by what it is, not by its name alone."""
        named = self.name in setup_names()
        return named and load_setup(self.name).digest == self.digest

    def game(self, rows: Rows | None = None) -> "Game[Any, Any]":
        """The game, with more room than it needs where that is asked for."""
        if isinstance(self.content, WildfireConfig):
            from plato.domains.wildfire.game import Wildfire

            return Wildfire.from_config(self.content, **(rows or self.rows)._asdict())
        if rows not in (None, self.rows):
            raise PlatoError(
                f"{self.name} has arrays for {self.rows.agents} agents and "
                f"{self.rows.tasks} tasks; what is trained together with it needs as "
                f"many."
            )
        return self.content


def setup_names() -> list[str]:
    """The setups that come with the package: native, as the text has them, transfer."""
    names = [path.name.removesuffix(".toml") for path in _shipped().iterdir()]
    return sorted(names, key=lambda n: (n.count("-") > 2, n.endswith("transfer"), n))


def load_setup(name: str | Path) -> Setup:
    """A shipped setup by its name, any other by the path of its TOML file, and a game
    of one's own by where it is in Python: `couriers.py:rush_hour`."""
    path = Path(name)
    if path.suffix == ".toml":
        return Setup(setup_name(name), read_setup(path))
    if ":" in path.name:
        from plato.domains.own import own_game

        return Setup(setup_name(name), own_game(str(name)))
    if str(name) not in setup_names():
        raise PlatoError(
            f"There is no setup named {str(name)!r}; `plato setups` lists them, a path "
            f"ending in .toml names a file of your own, and couriers.py:rush_hour the "
            f"game `rush_hour` of couriers.py."
        )
    return Setup(str(name), read_setup(Path(str(_shipped() / f"{name}.toml"))))


def setup_name(setup: str | Path) -> str:
    """What a setup is called: its own name, or that of its file."""
    path = Path(setup)
    if path.suffix == ".toml":
        return path.stem
    return path.name.replace(".py:", ":") if ":" in path.name else str(setup)


def distinct(setups: Sequence[Setup]) -> list[Setup]:
    """Each setup once; refused where two games go by one name."""
    found: dict[str, Setup] = {}
    for setup in setups:
        if found.setdefault(setup.name, setup).digest != setup.digest:
            raise PlatoError(
                f"Two different setups are called {setup.name!r}; rename the file of "
                f"one, for results go by these names."
            )
    return list(found.values())


def public_in_all(setups: Sequence[Setup]) -> list[bool]:
    """Which features of an agent the others see in every one of them."""
    return [all(flags) for flags in zip(*(s.public for s in setups), strict=True)]


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
