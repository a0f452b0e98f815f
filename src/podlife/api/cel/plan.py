"""A checked tree becomes closures that evaluate it and count upstream's runtime cost.

The cost follows cel-go's interpreter to the letter, with its optimizations: literals of constants and conversions of
constants are computed once and are free, a test for membership in such a list is free, a variable with its fields is
one attribute, and an attribute inside of `?:` or an index is charged only for its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podlife.api.cel import operators
from podlife.api.cel.containers import bind_step, fold_step, list_step, map_step, struct_step
from podlife.api.cel.errors import CelError, EvaluationError
from podlife.api.cel.functions import FUNCTIONS
from podlife.api.cel.regex import compile_pattern
from podlife.api.cel.runtime_cost import call_cost
from podlife.api.cel.steps import (
    Attribute,
    Failure,
    Lazy,
    Qualifier,
    Run,
    Step,
    attribute_step,
    constant,
    plain_step,
)
from podlife.api.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from podlife.api.cel.types import CelType
from podlife.api.cel.values import (
    Meter,
    Optional,
    to_key,
)

_CONVERSIONS = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
_PATTERNS = frozenset({"matches", "find", "findAll"})


def plan(node: Node) -> Step:
    """Raises CelError where a constant cannot be converted."""
    match node:
        case Literal():
            return constant(node.value)
        case Ident():
            return constant(node.constant) if node.constant is not None else _plan_variable(node.name)
        case Select():
            return _plan_select(node)
        case Call():
            special = _SPECIAL.get(node.function)
            return special(node) if special else _plan_call(node)
        case ListLiteral():
            return list_step([plan(element) for element in node.elements], node.optional)
        case MapLiteral():
            return map_step([(plan(entry.key), plan(entry.value), entry.optional) for entry in node.entries])
        case StructLiteral():
            entries = [(entry.name, plan(entry.value), entry.optional) for entry in node.entries]
            return struct_step(node.type.name, entries)
        case Comprehension() if node.is_bind:
            return bind_step(node.accumulator, plan(node.initial), plan(node.result))
        case Comprehension():
            loop = plan(node.condition), plan(node.step)
            return fold_step(node, plan(node.range), plan(node.initial), loop, plan(node.result))
    raise AssertionError(node)


def _plan_variable(name: str) -> Step:
    name = name.removeprefix(".")

    def base(run: Run) -> Any:
        value = run.names.get(name, _MISSING)
        if type(value) is Failure:
            raise value.error
        if type(value) is Lazy:
            return value.get(run)
        if value is _MISSING:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value() if callable(value) else value

    return attribute_step(Attribute(base, 1))


_MISSING = object()


def _qualified(operand: Step, qualifier: Qualifier) -> Step:
    before = operand.attribute
    if before is None:
        return attribute_step(Attribute(operand.evaluate, 1, [qualifier]))
    return attribute_step(Attribute(before.base, before.cost, [*before.qualifiers, qualifier]))


def _plan_select(node: Select) -> Step:
    operand = plan(node.operand)
    name = node.field_name
    if not name:
        return operand
    if not node.test_only:
        return _qualified(operand, Qualifier(constant(name)))

    def test(run: Run) -> bool:
        value = operand.resolve(run)
        run.meter.charge(1)
        if isinstance(value, Optional):
            if not value.has_value:
                return False
            value = value.value
        return operators.find_index(value, name)[0]

    return plain_step(test)


def _plan_index(node: Call) -> Step:
    operand, key = plan(node.args[0]), plan(node.args[1])
    return _qualified(operand, Qualifier(key, is_optional=node.function != "_[_]"))


def _plan_conditional(node: Call) -> Step:
    condition, positive, negative = map(plan, node.args)

    def base(run: Run) -> Any:
        chosen = condition.evaluate(run)
        if type(chosen) is not bool:
            raise EvaluationError("no such overload")
        return (positive if chosen else negative).resolve(run)

    return attribute_step(Attribute(base, 0))


def _plan_logic(node: Call) -> Step:
    left, right = map(plan, node.args)
    decisive = node.function == "_||_"

    def evaluate(run: Run) -> bool:
        failure: EvaluationError | None = None
        for term in (left, right):
            try:
                value = term.evaluate(run)
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decisive:
                return bool(decisive)
            if type(value) is not bool:
                failure = failure or EvaluationError("no such overload")
        if failure is not None:
            raise failure
        return not decisive

    return plain_step(evaluate)


def _plan_not_strictly_false(node: Call) -> Step:
    argument = plan(node.args[0])

    def evaluate(run: Run) -> bool:
        try:
            value = argument.evaluate(run)
        except EvaluationError:
            value = True
        run.meter.charge(1)
        return value is not False

    return plain_step(evaluate)


def _plan_in(node: Call) -> Step:
    right = plan(node.args[1])
    if right.is_constant and node.overloads == ("in_list",):
        if not right.value:
            return constant(False)
        if all(isinstance(item, (bool, int, float, str, type(None))) for item in right.value):
            left = plan(node.args[0])
            members = {to_key(item) if item is not None else None for item in right.value}

            def evaluate(run: Run) -> bool:
                value = left.evaluate(run)
                if isinstance(value, (bool, int, float, str)):
                    value = to_key(value)
                elif value is not None:
                    return False
                return bool(value in members)

            return plain_step(evaluate)
    return _plan_call(node)


def _plan_or(node: Call) -> Step:
    if node.target is None:
        return _plan_call(node)
    left, right = plan(node.target), plan(node.args[0])
    keeps_optional = node.function == "or"

    def evaluate(run: Run) -> Any:
        value = left.evaluate(run)
        if not isinstance(value, Optional):
            return value
        if not value.has_value:
            return right.evaluate(run)
        return value if keeps_optional else value.value

    return plain_step(evaluate)


_SPECIAL: dict[str, Callable[[Call], Step]] = {
    "_[_]": _plan_index,
    "_[?_]": _plan_index,
    "_?._": _plan_index,
    "_?_:_": _plan_conditional,
    "_&&_": _plan_logic,
    "_||_": _plan_logic,
    "@not_strictly_false": _plan_not_strictly_false,
    "@in": _plan_in,
    "or": _plan_or,
    "orValue": _plan_or,
}


def _evaluate_all(run: Run, steps: list[Step]) -> tuple[list[Any], EvaluationError | None]:
    """All arguments, of which errors stand for themselves, and the first of these."""
    values: list[Any] = []
    failure: EvaluationError | None = None
    for step in steps:
        try:
            values.append(step.evaluate(run))
        except EvaluationError as error:
            values.append(error)
            # cel-go leaves calls of three and more arguments at the first error, without a charge.
            if len(values) < len(steps) and len(steps) > 2:
                raise
            failure = failure or error
    return values, failure


def _plan_call(node: Call) -> Step:
    arguments = [plan(argument) for argument in node.args]
    static = [argument.type for argument in node.args]
    if node.target is not None:
        arguments.insert(0, plan(node.target))
        static.insert(0, node.target.type)
    function, overload = node.function, node.overloads[0] if len(node.overloads) == 1 else ""
    implementation = FUNCTIONS[function]
    if any(map(_is_dynamic, static)) and function not in ("_==_", "_!=_", "dyn", "type"):
        implementation = operators.guarded(function, node.target is not None, implementation)

    def evaluate(run: Run) -> Any:
        values, failure = _evaluate_all(run, arguments)
        result: Any = failure
        if failure is None:
            try:
                result = implementation(run.meter, *values)
            except EvaluationError as error:
                result = failure = error
        run.meter.charge(call_cost(run.meter, function, overload, values, result))
        if failure is not None:
            raise failure
        return result

    try:
        if function in _CONVERSIONS and len(arguments) == 1 and arguments[0].is_constant:
            return constant(implementation(Meter(10**6), arguments[0].value))
        if function in _PATTERNS and arguments[1].is_constant and isinstance(arguments[1].value, str):
            compile_pattern(arguments[1].value)
    except EvaluationError as error:
        raise CelError(str(error)) from None
    return plain_step(evaluate)


# Null may stand for a time or an object; which function takes it, only its value tells.
def _is_dynamic(one: CelType) -> bool:
    return one.kind in ("dyn", "error", "null")
