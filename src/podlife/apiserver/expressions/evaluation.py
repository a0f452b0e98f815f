"""Evaluates expressions of a policy over one request, within a budget for all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podlife.api.cel import CelError, EvaluationError
from podlife.apiserver.expressions.compiler import Expression

_BUDGET = 10_000_000
# For all match conditions of a webhook or a policy.
_CONDITION_BUDGET = 2_500_000


class OutOfBudgetError(ValueError):
    """The expressions together are too expensive: none of those left is evaluated."""

    def __init__(self) -> None:
        why = "running out of cost budget, no further validation rules will be run"
        super().__init__(f"validation failed due to {why}")


class Evaluation:
    """Composed variables are evaluated when an expression first needs them, and once."""

    def __init__(
        self, names: Mapping[str, Any], variables: Mapping[str, Expression], budget: int = _BUDGET
    ) -> None:
        self.budget = budget
        self._names = {**names, "variables": _Variables(self, variables)}
        self._composition_cost = 0

    def value(self, expression: Expression) -> Any:
        """Raises OutOfBudgetError, or another ValueError if this expression fails."""
        if expression.program is None:
            raise ValueError(f"compilation error: {expression.problem}")
        try:
            found = expression.program.evaluate(self._names)
        except CelError as error:
            self._spend(error.cost)
            raise ValueError(f"expression '{expression.source}' resulted in error: {error}") from None
        self._spend(found.cost)
        return found.value

    def variable(self, name: str, expression: Expression) -> Any:
        """The value of a composed variable; raises EvaluationError."""
        if expression.program is None:
            raise EvaluationError(f'composited variable "{name}" fails to compile: {expression.problem}')
        try:
            found = expression.program.evaluate(self._names)
        except CelError as error:
            self._composition_cost += error.cost
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {error}') from None
        self._composition_cost += found.cost
        return found.value

    def _spend(self, cost: int) -> None:
        self.budget -= cost + self._composition_cost
        self._composition_cost = 0
        if self.budget < 0:
            raise OutOfBudgetError


class _Variables(dict[str, Any]):
    """The composed variables by name. A value is computed when it is read."""

    def __init__(self, evaluation: Evaluation, variables: Mapping[str, Expression]) -> None:
        super().__init__(variables)
        self._evaluation = evaluation
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._evaluation.variable(name, super().__getitem__(name))
        return self._values[name]


def meets_conditions(
    conditions: Sequence[Expression], names: Mapping[str, Any], *, ignores_failure: bool
) -> bool:
    """Whether all match conditions hold. One that is false decides; else one that fails raises ValueError, or counts as
    false if failures are ignored."""
    evaluation = Evaluation(names, {}, _CONDITION_BUDGET)
    errors: list[str] = []
    is_met = True
    for condition in conditions:
        try:
            is_met = evaluation.value(condition) is not False and is_met
        except OutOfBudgetError:
            if ignores_failure:
                return False
            raise
        except ValueError as error:
            errors.append(str(error))
    if errors and is_met and not ignores_failure:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return is_met and not errors
