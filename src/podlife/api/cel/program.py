"""Compile an expression, evaluate it within a budget, estimate what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podlife.api.cel.checker import check
from podlife.api.cel.declarations import Environment
from podlife.api.cel.errors import CelError, display
from podlife.api.cel.estimate import estimate
from podlife.api.cel.parser import parse
from podlife.api.cel.plan import plan
from podlife.api.cel.ranges import Range
from podlife.api.cel.schema import convert
from podlife.api.cel.steps import Run, Step
from podlife.api.cel.syntax import Ident, Node
from podlife.api.cel.types import CelType, unwrap_optional
from podlife.api.cel.validators import children, validate
from podlife.api.cel.values import NONE, Meter, Optional, to_json

PER_CALL_LIMIT = 1_000_000
"""What one evaluation may cost."""
PER_EXPRESSION_ESTIMATE = 10_000_000
"""The highest estimated cost of a validation rule, times how often its value may occur in an object."""
PER_DEFINITION_ESTIMATE = 100_000_000
"""The highest sum of these in one CustomResourceDefinition."""

_TOO_DEEP = "evaluation exceeds the maximum depth"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A result and its cost. A JSON value stands for itself; what JSON cannot hold is a value of `podlife.api.cel`."""

    value: Any
    cost: int


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression. It has no state: any number of threads may use it at once."""

    source: str
    environment: Environment
    type: CelType
    _tree: Node
    _step: Step

    def evaluate(self, variables: Mapping[str, Any], cost_limit: int = PER_CALL_LIMIT) -> Evaluation:
        """Raises EvaluationError for an error of CEL, CostLimitExceededError, or CelError for a value too deep."""
        meter = Meter(cost_limit)
        declared = self.environment.variables
        try:
            names = {
                name: _Converted(value, declared[name])
                for name, value in variables.items()
                if name in declared
            }
            value = self._step.evaluate(Run(meter, names))
            return Evaluation(to_json(meter, value), meter.cost)
        except RecursionError:
            raise CelError(_TOO_DEEP) from None
        except CelError as error:
            error.cost = meter.cost
            raise

    def estimated_cost(self, sizes: Mapping[str, CelType] | None = None) -> Range:
        """The least and the most that an evaluation costs; `sizes` may replace the declared types."""
        return estimate(self._tree, self.environment.variables if sizes is None else sizes)

    def uses(self, variable: str) -> bool:
        """Whether the expression mentions a variable."""
        pending = [self._tree]
        while pending:
            node = pending.pop()
            if isinstance(node, Ident) and node.name.removeprefix(".") == variable:
                return True
            pending.extend(children(node))
        return False


class _Converted:
    """A variable, read by its type when the expression asks for it."""

    __slots__ = ("_is_done", "_type", "_value")

    def __init__(self, value: Any, of: CelType) -> None:
        self._value, self._type, self._is_done = value, of, False

    def __call__(self) -> Any:
        if not self._is_done:
            self._value, self._is_done = _read(self._value, self._type), True
        return self._value


def _read(value: Any, of: CelType) -> Any:
    """The value of an optional variable is an `Optional`, or None for an absent one."""
    inner, is_optional = unwrap_optional(of)
    if is_optional:
        if isinstance(value, Optional):
            value = value.value if value.has_value else None
        return NONE if value is None else Optional(True, _read(value, inner))
    # Values of opaque types and of structs that no schema describes are given as they are.
    if of.kind == "opaque" or (of.kind == "struct" and not of.min_size):
        return value
    return convert(value, of)


def compile(source: str, environment: Environment) -> Program:  # noqa: A001 - the verb of CEL, used as `cel.compile`
    """Parse, check and plan. Raises CelError with upstream's text, one paragraph for each problem."""
    try:
        tree = parse(source, with_bind=environment.with_bind)
        issues = check(tree, environment) or validate(tree)
        if issues:
            raise CelError(display(source, issues))
        return Program(source, environment, tree.type, tree, plan(tree))
    except RecursionError:
        raise CelError("ERROR: <input>:-1:0: expression recursion limit exceeded") from None
