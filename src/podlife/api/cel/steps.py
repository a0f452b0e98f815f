"""Steps of an evaluation: constants, plain calls, and attributes, which are values with the fields that follow them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from podlife.api.cel import operators
from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import NONE, Meter, Optional


@dataclass(slots=True)
class Run:
    """One evaluation: its budget and what names stand for."""

    meter: Meter
    names: dict[str, Any]


Evaluate = Callable[[Run], Any]


@dataclass(slots=True)
class Step:
    """`resolve` evaluates without the charge for an attribute."""

    evaluate: Evaluate
    resolve: Evaluate
    is_constant: bool = False
    value: Any = None
    attribute: Attribute | None = None


@dataclass(slots=True)
class Qualifier:
    key: Step
    is_optional: bool = False


@dataclass(slots=True)
class Attribute:
    """A variable or other value, and the fields and indexes that follow it."""

    base: Evaluate
    # A conditional has no cost of its own.
    cost: int
    qualifiers: list[Qualifier] = field(default_factory=list)

    def resolve(self, run: Run) -> Any:
        value = self.base(run)
        is_optional = False
        for qualifier in self.qualifiers:
            if isinstance(value, Optional):
                if not value.has_value:
                    return NONE
                value, is_optional = value.value, True
            is_optional = is_optional or qualifier.is_optional
            if not is_optional:
                run.meter.charge(1)
                value = operators.index(value, qualifier.key.resolve(run))
                continue
            is_found, value = operators.find_index(value, qualifier.key.resolve(run))
            if not is_found:
                return NONE
            run.meter.charge(1)
        if is_optional and not isinstance(value, Optional):
            return Optional(True, value)
        return value


class Lazy:
    """The value of a binding, computed when first used."""

    __slots__ = ("outer", "step", "value")

    def __init__(self, step: Step, outer: dict[str, Any]) -> None:
        self.step, self.outer, self.value = step, outer, None

    def get(self, run: Run) -> Any:
        if self.step is not None:
            self.value = self.step.evaluate(Run(run.meter, self.outer))
            self.step = None  # type: ignore[assignment]
        return self.value


class Failure:
    """An error as the value of an accumulator, raised where that is used."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


def constant(value: Any) -> Step:
    return Step(lambda _run: value, lambda _run: value, is_constant=True, value=value)


def plain_step(evaluate: Evaluate) -> Step:
    return Step(evaluate, evaluate)


def attribute_step(attribute: Attribute) -> Step:
    def evaluate(run: Run) -> Any:
        run.meter.charge(attribute.cost)
        return attribute.resolve(run)

    return Step(evaluate, attribute.resolve, attribute=attribute)
