"""Several beginnings of one training: who goes on, and what was played until then."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plato
from plato.errors import PlatoError
from plato.learners.beginnings import Contender, best
from plato.learners.budget import Budget
from plato.learners.program import Program
from small_runs import SMALL

SETUPS = {name: plato.load_setup(name) for name in SMALL.setups}


def with_beginnings(count: int, audition: float = 0.5) -> Program:
    learning = replace(SMALL.learning, beginnings=count, audition=audition)
    return Program(replace(SMALL, learning=learning), SETUPS)


def same(one, other) -> bool:
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


def test_the_best_goes_on_from_where_it_stands():
    """Three updates of all, by hand, then the best of each run and nobody else."""
    program = with_beginnings(3)
    (contenders,), alone = program.start(), with_beginnings(1)
    (lonely,) = alone.start()
    for update in (1, 2):
        ((contenders,), _), ((lonely,), _) = (
            program.advance([contenders], update),
            alone.advance([lonely], update),
        )
    # The first of the beginnings is what the training would have been without others.
    assert same(contenders[0].learner, lonely[0].learner)
    actors = [contender.learner.networks.actor for contender in contenders]
    assert not same(actors[0], actors[1])
    assert not same(actors[1], actors[2])
    # Two runs whose best are different ones.
    scores = jnp.asarray([[1e6, -1e6], [-1e6, -1e6], [-1e6, 1e6]])
    rigged = [c._replace(score=s) for c, s in zip(contenders, scores, strict=True)]
    ahead = [jax.tree.map(jnp.copy, contender) for contender in contenders]
    ((chosen,), metrics) = program.advance([rigged], 3)
    assert [contender.number.tolist() for contender in chosen] == [[0, 2]]
    whole, all_metrics = with_beginnings(3, audition=1.0).advance([ahead], 3)
    for run, number in enumerate([0, 2]):
        went_on = jax.tree.map(lambda leaf, r=run: leaf[r], chosen[0].learner)
        could = whole[0][number].learner
        assert same(went_on, jax.tree.map(lambda leaf, r=run: leaf[r], could))
    assert len(whole[0]) == 3
    assert metrics["return"][0].shape == all_metrics["return"][0].shape == (2,)
    # And alone from there: the same random numbers, and one policy for each run.
    ((after,), _) = program.advance([chosen], 4)
    assert after[0].number.tolist() == [0, 2]
    assert len(program.policies([after])) == 2


def test_scores_follow_the_latest_returns():
    contender = Contender.create(None, 0, 2)
    nothing = {"return": jnp.zeros(2), "episodes": jnp.zeros(2, jnp.int32)}
    assert contender.after(None, nothing).score.tolist() == [-np.inf, -np.inf]
    some = {"return": jnp.asarray([10.0, -4.0]), "episodes": jnp.asarray([1, 2])}
    first = contender.after(None, some)
    assert first.score.tolist() == [10.0, -4.0]
    more = {"return": jnp.asarray([20.0, 99.0]), "episodes": jnp.asarray([3, 0])}
    np.testing.assert_allclose(first.after(None, more).score, [11.0, -4.0])
    broken = {"return": jnp.asarray([jnp.nan, 1.0]), "episodes": jnp.asarray([1, 1])}
    np.testing.assert_allclose(first.after(None, broken).score, [10.0, -3.5])


def test_the_first_of_equals_is_chosen():
    ties = [jnp.asarray([1.0, -jnp.inf]), jnp.asarray([1.0, -jnp.inf])]
    assert best(ties, [jnp.asarray([10, 20]), jnp.asarray([11, 21])]).tolist() == [
        10,
        20,
    ]


def test_what_is_played():
    budget = Budget(games=2, steps=5, updates=10, beginnings=3, audition=0.4)
    assert budget.auditions == 4
    assert [budget.rollouts(n) for n in (0, 1, 4, 5, 10)] == [0, 3, 12, 13, 18]
    assert budget.played(10) == 180
    alone = Budget(games=2, steps=5, updates=10)
    assert alone.auditions == 0
    assert alone.played(10) == 100
    few = Budget(games=1, steps=1, updates=2, beginnings=2, audition=0.1)
    assert few.auditions == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beginnings": 0}, "beginnings must be from 1"),
        ({"audition": 0.0}, "audition must be a part of the training"),
        ({"audition": 1.5}, "not 1.5"),
    ],
)
def test_nonsense_is_refused(changes, words):
    with pytest.raises(PlatoError, match=words):
        replace(SMALL.learning, **changes)
