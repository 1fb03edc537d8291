"""Linear and integer programs written line by line, and what is known of their maximum.

A solver that is stopped early still knows a number that the maximum cannot exceed; that
number, not the best solution found, is what a bound may rest on.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

INFINITY = float("inf")
OPTIMAL, STOPPED = 0, 1


@dataclass(frozen=True)
class Linear:
    """A sum of variables with coefficients."""

    terms: dict[int, float]

    def __add__(self, other: "Linear") -> "Linear":
        terms = dict(self.terms)
        for variable, coefficient in other.terms.items():
            terms[variable] = terms.get(variable, 0.0) + coefficient
        return Linear(terms)

    def __sub__(self, other: "Linear") -> "Linear":
        return self + -1.0 * other

    def __rmul__(self, factor: float) -> "Linear":
        return Linear({v: factor * c for v, c in self.terms.items()})


NOTHING = Linear({})


def total(parts: list[Linear]) -> Linear:
    """The sum of many, in time linear in their terms."""
    terms: dict[int, float] = {}
    for part in parts:
        for variable, coefficient in part.terms.items():
            terms[variable] = terms.get(variable, 0.0) + coefficient
    return Linear(terms)


@dataclass(frozen=True)
class Maximum:
    """What is known of the maximum of a program."""

    at_most: float
    """No solution is worth more, whether the solver finished or not."""
    found: float
    """What the best solution found is worth; -inf if none was."""
    finished: bool


@dataclass(frozen=True)
class Program:
    """Variables from 0 up, all whole or none, and linear constraints on them."""

    whole: bool
    _upper: list[float] = field(default_factory=list)
    _rows: list[Linear] = field(default_factory=list)
    _least: list[float] = field(default_factory=list)
    _most: list[float] = field(default_factory=list)

    def variable(self, upper: float = INFINITY) -> Linear:
        """A new variable from 0 to `upper`."""
        self._upper.append(upper)
        return Linear({len(self._upper) - 1: 1.0})

    def at_most(self, left: Linear, limit: float) -> None:
        """Adds left <= limit."""
        self._add(left, -INFINITY, limit)

    def at_least(self, left: Linear, limit: float) -> None:
        """Adds left >= limit."""
        self._add(left, limit, INFINITY)

    def equal(self, left: Linear, value: float) -> None:
        """Adds left = value."""
        self._add(left, value, value)

    def maximum(self, objective: Linear, time_limit: float) -> Maximum:
        """The largest value of `objective`, or what is known of it after the time."""
        if not self._upper:
            return Maximum(0.0, 0.0, finished=True)
        variables = len(self._upper)
        weights = _dense(objective, variables)
        result: Any = milp(
            -weights,
            integrality=np.full(variables, int(self.whole)),
            bounds=Bounds(*_arrays(np.zeros(variables), self._upper)),
            constraints=self._constraints(variables),
            # Presolve loses optima in HiGHS 1.12 (SciPy 1.17), which would make bounds
            # that episodes exceed. And nearly the best is not the best.
            options={"time_limit": time_limit, "presolve": False, "mip_rel_gap": 0.0},
        )
        if result.status not in (OPTIMAL, STOPPED):
            raise RuntimeError(f"HiGHS: {result.message} (status {result.status})")
        found = -INFINITY if result.fun is None else -float(result.fun)
        finished = result.status == OPTIMAL
        if not self.whole:
            return Maximum(found if finished else INFINITY, found, finished)
        dual = result.mip_dual_bound
        if dual is None or not math.isfinite(dual):
            return Maximum(INFINITY, found, finished)
        return Maximum(-float(dual), found, finished)

    def _add(self, left: Linear, least: float, most: float) -> None:
        self._rows.append(left)
        self._least.append(least)
        self._most.append(most)

    def _constraints(self, variables: int) -> LinearConstraint | None:
        if not self._rows:
            return None
        pairs = [
            (row, variable, coefficient)
            for row, left in enumerate(self._rows)
            for variable, coefficient in left.terms.items()
        ]
        rows, columns, values = (np.array(part) for part in zip(*pairs, strict=True))
        shape = (len(self._rows), variables)
        matrix: Any = csr_array((values.astype(float), (rows, columns)), shape)
        return LinearConstraint(matrix, *_arrays(self._least, self._most))


def _arrays(*values: Any) -> list[Any]:
    """SciPy takes arrays where its annotations say numbers."""
    return [np.asarray(v, float) for v in values]


def _dense(linear: Linear, variables: int) -> np.ndarray:
    weights = np.zeros(variables)
    for variable, coefficient in linear.terms.items():
        weights[variable] = coefficient
    return weights
