"""Steps that build lists, maps and structs, and those that loop over them."""

from __future__ import annotations

from typing import Any

from podlife.api.cel import operators
from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.steps import Evaluate, Failure, Lazy, Run, Step, constant, plain_step
from podlife.api.cel.syntax import Comprehension
from podlife.api.cel.values import LISTS, MAPS, Accumulator, Optional, Struct, find, from_key, keys, to_key


def _charged(build: Evaluate, cost: int) -> Evaluate:
    """A literal is charged even if one of its parts fails."""

    def evaluate(run: Run) -> Any:
        try:
            return build(run)
        finally:
            run.meter.charge(cost)

    return evaluate


def list_step(elements: list[Step], optional: frozenset[int]) -> Step:
    def build(run: Run) -> list[Any]:
        built: list[Any] = []
        for index, element in enumerate(elements):
            value = element.evaluate(run)
            if index in optional:
                if not isinstance(value, Optional):
                    raise EvaluationError(
                        f"cannot initialize optional list element from non-optional value {value}"
                    )
                if not value.has_value:
                    continue
                value = value.value
            built.append(value)
        return built

    if all(element.is_constant for element in elements) and not optional:
        return constant([element.value for element in elements])
    return plain_step(_charged(build, 10))


def map_step(entries: list[tuple[Step, Step, bool]]) -> Step:
    def build(run: Run) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key_step, value_step, is_optional in entries:
            key = to_key(key_step.evaluate(run))
            value = value_step.evaluate(run)
            if is_optional:
                if not isinstance(value, Optional):
                    text = "cannot initialize optional entry"
                    raise EvaluationError(f"{text} '{from_key(key)}' from non-optional value {value}")
                if not value.has_value:
                    built.pop(key, None)
                    continue
                value = value.value
            built[key] = value
        return built

    if all(key.is_constant and value.is_constant and not optional for key, value, optional in entries):
        try:
            return constant({to_key(key.value): value.value for key, value, _ in entries})
        except EvaluationError:
            pass
    return plain_step(_charged(build, 30))


def struct_step(type_name: str, entries: list[tuple[str, Step, bool]]) -> Step:
    def build(run: Run) -> Struct:
        built = Struct(type_name, {})
        for name, step, is_optional in entries:
            value = step.evaluate(run)
            if is_optional:
                if not isinstance(value, Optional) or not value.has_value:
                    continue
                value = value.value
            built[name] = value
        return built

    return plain_step(_charged(build, 40))


def bind_step(name: str, value: Step, result: Step) -> Step:
    """Names a value, which is computed when it is first used."""

    def bind(run: Run) -> Any:
        return result.evaluate(Run(run.meter, {**run.names, name: Lazy(value, run.names)}))

    return plain_step(bind)


def fold_step(node: Comprehension, over: Step, initial: Step, loop: tuple[Step, Step], result: Step) -> Step:
    """Folds a list or map into the accumulator; `loop` is the condition and the step."""
    (condition, step), accumulator = loop, node.accumulator
    variable, variable2 = node.variable, node.variable2

    def fold(run: Run) -> Any:
        items = _iterate(over.evaluate(run), two=bool(variable2))
        names = dict(run.names)
        inner = Run(run.meter, names)
        start = initial.evaluate(run)
        if initial.is_constant and start == [] and isinstance(start, list):
            start = Accumulator()
        elif initial.is_constant and isinstance(start, dict):
            start = dict(start)
        names[accumulator] = start
        for first, second in items:
            names[variable] = first
            if variable2:
                names[variable2] = second
            if condition.evaluate(inner) is False:
                break
            try:
                names[accumulator] = step.evaluate(inner)
            except EvaluationError as error:
                names[accumulator] = Failure(error)
        names.pop(variable, None)
        value = result.evaluate(inner)
        return list(value) if type(value) is Accumulator else value

    return plain_step(fold)


def _iterate(container: Any, *, two: bool) -> Any:
    if isinstance(container, LISTS):
        return enumerate(container) if two else ((item, None) for item in container)
    if isinstance(container, MAPS):
        if two:
            return ((key, find(container, key)[1]) for key in keys(container))
        return ((key, None) for key in keys(container))
    raise EvaluationError(f"got '{operators.go_type(container)}', expected iterable type")
