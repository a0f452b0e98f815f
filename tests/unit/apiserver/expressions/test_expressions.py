"""Compilation and evaluation of admission expressions: what they know, what they may cost, how they fail."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.cel import BOOL, STRING, Authorizer, Decision
from podlife.apiserver.expressions import (
    ANNOTATION_TYPES,
    PATCH_TYPES,
    Declarations,
    Evaluation,
    Expression,
    ExpressionCompiler,
    OutOfBudgetError,
    compile_condition,
    meets_conditions,
)

TEN = "[1,2,3,4,5,6,7,8,9,10]"
NAMES: dict[str, Any] = {"object": {"data": {"x": "1"}}, "oldObject": None}
BROKEN = "expression 'object.data.y == ''' resulted in error: no such key: y"


def compiler(**declared: Any) -> ExpressionCompiler:
    return ExpressionCompiler(Declarations(**declared))


def loops(depth: int) -> str:
    inner = "true"
    for index in range(depth):
        inner = f"{TEN}.all(v{index}, {inner})"
    return inner


@pytest.mark.parametrize(
    ("compiled", "problem"),
    [
        (compiler().compile("1", BOOL), "must evaluate to bool but got int"),
        (compiler().compile("object.x", BOOL), "must evaluate to bool but got dyn"),
        (
            compiler().compile("1", *ANNOTATION_TYPES),
            "must evaluate to one of [string null_type] but got int",
        ),
        (
            compiler().compile("[Object{}]", PATCH_TYPES["JSONPatch"], has_patch_types=True),
            "must evaluate to list(JSONPatch) but got list(Object)",
        ),
        (
            compiler().compile("Object.spec{}", PATCH_TYPES["ApplyConfiguration"], has_patch_types=True),
            "must evaluate to Object but got Object.spec",
        ),
        (compile_condition("true"), ""),
    ],
)
def test_an_expression_must_have_a_type(compiled: Expression, problem: str) -> None:
    assert compiled.problem == problem


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("params", compile_condition("params == null")),
        ("variables", compile_condition("variables.x")),
        ("authorizer", compiler().compile("authorizer.x", STRING, has_authorizer=False)),
        ("Object", compiler().compile("Object{}")),
    ],
)
def test_what_is_not_declared_is_unknown(name: str, compiled: Expression) -> None:
    start = f"compilation failed: ERROR: <input>:1:{7 if name == 'Object' else 1}: undeclared reference to '{name}'"
    assert compiled.problem.startswith(start)


def test_a_variable_is_known_with_its_type_to_what_follows_it() -> None:
    composed = compiler(variables={})
    assert composed.compile("variables.n", BOOL).problem.endswith(" | variables.n\n | .........^")
    composed.add_variable("n", "int(object.data.x) + 1")
    assert composed.compile("variables.n", BOOL).problem == "must evaluate to bool but got int"
    composed.add_variable("list", "[variables.n]")
    ask = Evaluation(NAMES, composed.variables)
    assert ask.value(composed.compile("variables.list[0] == 2", BOOL)) is True


def test_a_variable_that_fails_fails_what_needs_it() -> None:
    composed = compiler(variables={})
    composed.add_variable("y", "object.data.y")
    ask = Evaluation(NAMES, composed.variables)
    assert ask.value(composed.compile("true || variables.y == ''")) is True
    with pytest.raises(ValueError, match='composited variable "y" fails to evaluate: no such key: y'):
        ask.value(composed.compile("variables.y == ''"))


def test_one_expression_and_all_of_them_together_have_a_limit() -> None:
    ask = Evaluation(NAMES, {})
    with pytest.raises(ValueError, match="operation cancelled: actual cost limit exceeded"):
        ask.value(compiler().compile(loops(6)))
    ask.budget = 1000
    with pytest.raises(OutOfBudgetError):
        ask.value(compiler().compile(loops(3)))


def test_composed_variables_count_in_the_budget() -> None:
    composed = compiler(variables={})
    composed.add_variable("slow", loops(3))
    ask = Evaluation(NAMES, composed.variables, 1000)
    with pytest.raises(OutOfBudgetError):
        ask.value(composed.compile("variables.slow"))


def test_the_authorizer_knows_the_resource_of_the_request() -> None:
    def decide(asked: Any) -> Decision:
        return Decision(asked["verb"] == "get" and asked["resource"] == "pods")

    known = {
        "authorizer": Authorizer(decide),
        "authorizer.requestResource": Authorizer(decide, (("resource", "pods"),), "ResourceCheck"),
    }
    ask = Evaluation(known, {})
    assert ask.value(compile_condition("authorizer.requestResource.check('get').allowed()")) is True
    assert (
        ask.value(compile_condition("authorizer.group('').resource('nodes').check('get').allowed()")) is False
    )


@pytest.mark.parametrize(
    ("sources", "outcome"),
    [
        ([], True),
        (["true", "object.data.x == '1'"], True),
        (["true", "false"], False),
        (["object.data.y == ''", "false"], False),
        (["true", "object.data.y == ''"], BROKEN),
        (["object.data.y == ''"] * 2, f"[{BROKEN}, {BROKEN}]"),
    ],
)
def test_a_false_condition_decides_before_one_that_fails(sources: list[str], outcome: bool | str) -> None:
    conditions = [compile_condition(source) for source in sources]
    if isinstance(outcome, bool):
        assert meets_conditions(conditions, NAMES, ignores_failure=False) is outcome
        return
    with pytest.raises(ValueError) as caught:
        meets_conditions(conditions, NAMES, ignores_failure=False)
    assert str(caught.value) == outcome
    assert meets_conditions(conditions, NAMES, ignores_failure=True) is False


def test_conditions_have_a_budget() -> None:
    conditions = [compile_condition(loops(5))] * 8
    with pytest.raises(OutOfBudgetError):
        meets_conditions(conditions, NAMES, ignores_failure=False)
    assert meets_conditions(conditions, NAMES, ignores_failure=True) is False
