"""The search itself: Optuna proposes, trials answer, and nothing is asked twice.

A study is a folder:

study.journal    every trial, written as it ends (Optuna's journal)
best.toml        the best settings so far, for `plato train --config`: one training, as
                 long as a trial's
trials.csv       all finished trials, one a line
"""

import csv
import io
import itertools
import json
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from plato.configuration import to_toml, whole_number
from plato.domains.setups import Setup, load_setup
from plato.errors import PlatoError
from plato.files import held, writable, write_text
from plato.learners.config import MethodName, TrainConfig, TrainSettings
from plato.tuning.spaces import SPACES, Choice, configuration, defaults
from plato.tuning.trials import Ears, scores

if TYPE_CHECKING:
    import optuna


Run: TypeAlias = Callable[..., Iterable[tuple[int, float]]]
"""What does trials, as `scores` does."""
GAME = "game"
"""Where a study keeps the digest of its setup."""
SETTINGS = "settings"
"""Where it keeps what all of its trials have in common: defaults may change."""
CUT = "cut"
"""Where a study keeps the numbers of trials that were killed."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is searched, and with what budget. The defaults are the paper's."""

    method: MethodName
    setup: str = "wildfire-3x3-S3"
    episodes: int = 2000
    """That a training of a trial is long."""
    validation: int = 15
    """Episodes that score a training, on seeds that are never reported."""
    trainings: int = 1
    """Of a trial, with one seed after the other: its score is their mean."""
    seed: int = 42
    """Of the search, and of the first training of every trial."""

    def __post_init__(self) -> None:
        whole_number("episodes", self.episodes, 1)
        whole_number("validation", self.validation, 1)
        whole_number("trainings", self.trainings, 1)
        whole_number("seed", self.seed, 0)


@dataclass(frozen=True)
class Standing:
    """How a search goes, for whoever shows it."""

    done: int
    best: float
    found: dict[str, float]
    """The settings of the best trial."""
    last: list[float]
    """The scores of the trials that have just ended."""
    running: tuple[int, ...] = ()
    """The numbers of those that are being trained."""
    share: float = 0.0
    """How much of that is over."""


def search(
    plan: Plan,
    folder: Path,
    trials: int,
    together: int = 8,
    report: Callable[[Standing], None] = lambda standing: None,
    run: Run | None = None,
    says: Callable[[str], None] = lambda line: None,
) -> Standing:
    """Goes on with the study in a folder until it has so many finished trials.

    Reports how it stands when it begins, whenever a trial has ended, and now and then
    while they run.
    Trials that were under way when a process was killed are run again. `run` does
    what `scores` does, elsewhere.
    """
    optuna = _optuna()
    setup = load_setup(plan.setup)
    steps = plan.episodes * int(setup.game().horizon)
    journal = folder / "study.journal"
    if not journal.exists():
        _refuse_what_cannot_be_tried(defaults(plan.method), plan, steps)
    writable(journal)
    with held(folder, "searched"):
        study = _open(optuna, plan, setup, folder)
        base = _in_common(plan, study, folder)
        _refuse_what_cannot_be_tried(base, plan, steps)
        standing = _standing(study, [])
        report(standing)
        while (done := len(_finished(study))) < trials:
            # Seeded by what is known already, so that a search that was stopped and
            # one that was not propose alike.
            study.sampler = optuna.samplers.TPESampler(
                seed=plan.seed + done, constant_liar=True
            )
            asked = [
                study.ask(_distributions(optuna, plan.method))
                for _ in range(min(together, trials - done))
            ]
            batch = _Batch([trial.number for trial in asked], standing, report)
            answers = (run or scores)(
                base,
                setup,
                [trial.params for trial in asked],
                steps=steps,
                seed=plan.seed,
                validation=plan.validation,
                trainings=plan.trainings,
                ears=Ears(batch.trains, says),
            )
            for place, answer in answers:
                failed = math.isnan(answer)
                state = optuna.trial.TrialState.FAIL if failed else None
                study.tell(asked[place], None if failed else answer, state=state)
                standing = _standing(study, [answer])
                _write(plan, base, folder, study, steps)
                batch.ended(place, standing)
    return standing


class _Batch:
    """Trials that were proposed together, as long as some of them run."""

    def __init__(
        self,
        numbers: Sequence[int],
        standing: Standing,
        report: Callable[[Standing], None],
    ) -> None:
        self.numbers, self.report = numbers, report
        self.standing = replace(standing, last=[])
        self.shares: dict[int, float] = {}
        """By place in the batch: how much of a trial that runs is over."""
        self.lock = threading.Lock()

    def trains(self, places: Sequence[int], share: float) -> None:
        with self.lock:
            self.shares |= dict.fromkeys(places, share)
            self._tell(self.standing)

    def ended(self, place: int, standing: Standing) -> None:
        with self.lock:
            self.shares.pop(place, None)
            self.standing = replace(standing, last=[])
            self._tell(standing)

    def _tell(self, standing: Standing) -> None:
        running = tuple(self.numbers[place] for place in sorted(self.shares))
        share = sum(self.shares.values()) / len(running) if running else 0.0
        self.report(replace(standing, running=running, share=share))


def _refuse_what_cannot_be_tried(base: TrainSettings, plan: Plan, steps: int) -> None:
    """A budget that some trial could not be done with."""
    space = SPACES[plan.method].items()
    sizes = [of.sizes if isinstance(of, Choice) else (of.low,) for _, of in space]
    for values in itertools.product(*sizes):
        found = dict(zip(SPACES[plan.method], values, strict=True))
        configuration(base, plan.setup, found, steps=steps, seed=plan.seed)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise PlatoError(
            "Searching needs Optuna; install it with: pip install 'plato-marl[tune]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _open(optuna: Any, plan: Plan, setup: Setup, folder: Path) -> "optuna.Study":
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "study.journal"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name="plato",
        direction="maximize",
        load_if_exists=True,
    )
    before = study.user_attrs.get("plan")
    if before is None:
        before = asdict(plan)
        study.set_user_attr("plan", before)
    # One that was begun by an older version lacks what there was not to choose then.
    if asdict(Plan(method=plan.method)) | before != asdict(plan):
        raise PlatoError(
            f"{folder}: holds a search with other settings ({json.dumps(before)}); "
            f"choose another --out."
        )
    # A study that was begun by an older version notes the game from now on.
    if study.user_attrs.get(GAME, setup.digest) != setup.digest:
        raise PlatoError(
            f"{plan.setup}: is not the game that {folder} was begun with; restore it, "
            f"or choose another --out."
        )
    study.set_user_attr(GAME, setup.digest)
    states = optuna.trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        study.set_user_attr(CUT, [*study.user_attrs.get(CUT, []), trial.number])
        study.tell(trial.number, state=states.FAIL)
        study.enqueue_trial(trial.params)
    return study


def _distributions(optuna: Any, method: MethodName) -> dict[str, Any]:
    kinds = optuna.distributions
    return {
        name: kinds.CategoricalDistribution(of.sizes)
        if isinstance(of, Choice)
        else kinds.FloatDistribution(of.low, of.high, log=of.log)
        for name, of in SPACES[method].items()
    }


def _finished(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Trials that came to an end by themselves, with a score or without."""
    cut = study.user_attrs.get(CUT, [])
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state.is_finished() and trial.number not in cut
    ]


def _standing(study: "optuna.Study", last: list[float]) -> Standing:
    finished = _finished(study)
    scored = [(t.value, t.params) for t in finished if t.value is not None]
    if not scored:
        return Standing(len(finished), float("nan"), {}, last)
    best, found = max(scored, key=lambda trial: trial[0])
    return Standing(len(finished), best, found, last)


def _in_common(plan: Plan, study: "optuna.Study", folder: Path) -> TrainSettings:
    """What all trials have beside what is searched, from the first to the last."""
    kept = study.user_attrs.get(SETTINGS)
    if kept is None:
        # A study that was begun by an older version notes today's from now on.
        base = TrainConfig(setups=(plan.setup,), **vars(defaults(plan.method)))
        known = base.to_mapping()
        kept = {name: known[name] for name in ("method", "networks", "learning")}
        study.set_user_attr(SETTINGS, kept)
    try:
        return TrainConfig.from_mapping({**kept, "setups": [plan.setup]})
    except PlatoError as error:
        raise PlatoError(
            f"{folder}: was begun with settings that this version cannot use "
            f"({error}); choose another --out."
        ) from None


def _write(
    plan: Plan, base: TrainSettings, folder: Path, study: "optuna.Study", steps: int
) -> None:
    """The files beside the journal, anew."""
    standing = _standing(study, [])
    if standing.found:
        config = configuration(
            base, plan.setup, standing.found, steps=steps, seed=plan.seed
        )
        # Trials keep their last policy alone: nobody chooses among others.
        config = replace(config, checkpoints=TrainConfig.checkpoints)
        write_text(folder / "best.toml", to_toml(config.to_mapping()))
    rows = io.StringIO()
    names = list(SPACES[plan.method])
    table = csv.writer(rows, lineterminator="\n")
    table.writerow(["trial", "score", *names])
    for trial in _finished(study):
        score = "" if trial.value is None else trial.value
        table.writerow([trial.number, score, *(trial.params[n] for n in names)])
    write_text(folder / "trials.csv", rows.getvalue())
