"""The expressions of a policy, compiled, and what they say about a request. Pure; errors are ValueError in upstream's
words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from podlife.api.cel import BOOL, STRING
from podlife.api.codec import Object, decode_object
from podlife.apiserver.expressions import (
    ANNOTATION_TYPES,
    PATCH_TYPES,
    Declarations,
    Evaluation,
    Expression,
    ExpressionCompiler,
    OutOfBudgetError,
    compile_condition,
)

_MOST_POLICIES_KEPT = 256
_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024


@dataclass(frozen=True, slots=True)
class Validation:
    expression: Expression
    message_expression: Expression | None
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mutation:
    patch_type: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class PolicyProgram:
    variables: Mapping[str, Expression]
    conditions: tuple[Expression, ...]
    validations: tuple[Validation, ...]
    # By key.
    annotations: tuple[tuple[str, Expression], ...]
    mutations: tuple[Mutation, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A validation that does not hold, or cannot be evaluated."""

    index: int
    message: str
    reason: str = ""
    is_error: bool = False


@dataclass(slots=True)
class PolicyResult:
    """`annotations` are for the audit log, by key; `annotation_errors` tell why others are missing."""

    failures: list[Failure] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    annotation_errors: list[str] = field(default_factory=list)


@lru_cache(maxsize=_MOST_POLICIES_KEPT)
def compile_policy(source: bytes) -> PolicyProgram:
    """Compile a spec, as it is stored. Expressions that do not compile fail when they are used."""
    spec = decode_object(source)
    has_params = spec.get("paramKind") is not None
    compiler = ExpressionCompiler(Declarations(has_params=has_params, variables={}))
    for variable in spec.get("variables") or ():
        compiler.add_variable(variable.get("name", ""), variable.get("expression", ""))
    return PolicyProgram(
        compiler.variables,
        tuple(
            compile_condition(each.get("expression", ""), has_params=has_params)
            for each in spec.get("matchConditions") or ()
        ),
        tuple(_validation(each, compiler) for each in spec.get("validations") or ()),
        tuple(
            (each.get("key", ""), compiler.compile(each.get("valueExpression", ""), *ANNOTATION_TYPES))
            for each in spec.get("auditAnnotations") or ()
        ),
        tuple(_mutation(each, compiler) for each in spec.get("mutations") or ()),
    )


def _validation(rule: Object, compiler: ExpressionCompiler) -> Validation:
    said = rule.get("messageExpression")
    return Validation(
        compiler.compile(rule.get("expression", ""), BOOL),
        compiler.compile(said, STRING, has_authorizer=False) if said else None,
        rule.get("message", ""),
        rule.get("reason") or "Invalid",
    )


def _mutation(mutation: Object, compiler: ExpressionCompiler) -> Mutation:
    kind = mutation.get("patchType", "")
    change = mutation.get("jsonPatch" if kind == "JSONPatch" else "applyConfiguration") or {}
    wanted = PATCH_TYPES.get(kind, PATCH_TYPES["JSONPatch"])
    return Mutation(kind, compiler.compile(change.get("expression", ""), wanted, has_patch_types=True))


def validate(program: PolicyProgram, names: Mapping[str, Any]) -> PolicyResult:
    """What the validations and audit annotations say. Raises OutOfBudgetError if all together are too expensive."""
    result = PolicyResult()
    evaluation = Evaluation(names, program.variables)
    outcomes = [_outcome(evaluation, rule) for rule in program.validations]
    why, said = "", [""] * len(outcomes)
    try:
        # Those of rules that hold, too: they share one budget.
        messages = Evaluation(names, program.variables, evaluation.budget)
        said = [_message(messages, rule) for rule in program.validations]
    except OutOfBudgetError as error:
        why = f"failed messageExpression: {error}"
    for index, rule in enumerate(program.validations):
        outcome = outcomes[index]
        if isinstance(outcome, ValueError) or why:
            message = str(outcome) if isinstance(outcome, ValueError) else why
            result.failures.append(Failure(index, message, is_error=True))
        elif not outcome:
            fallback = f"failed expression: {rule.expression.source.strip()}"
            message = said[index] or rule.message.strip() or fallback
            result.failures.append(Failure(index, message, rule.reason))
    _annotate(program, Evaluation(names, program.variables), result)
    return result


def _outcome(evaluation: Evaluation, rule: Validation) -> bool | ValueError:
    try:
        return evaluation.value(rule.expression) is True
    except OutOfBudgetError:
        raise
    except ValueError as error:
        return error


def _message(evaluation: Evaluation, rule: Validation) -> str:
    """What the message expression says; empty if it cannot be used."""
    if rule.message_expression is None:
        return ""
    try:
        said = evaluation.value(rule.message_expression)
    except OutOfBudgetError:
        raise
    except ValueError:
        return ""
    said = said.strip() if isinstance(said, str) else ""
    return "" if "\n" in said or len(said.encode()) > _LONGEST_MESSAGE else said


def _annotate(program: PolicyProgram, evaluation: Evaluation, result: PolicyResult) -> None:
    for key, expression in program.annotations:
        try:
            value = evaluation.value(expression)
        except OutOfBudgetError:
            raise
        except ValueError as error:
            result.annotation_errors.append(str(error))
            continue
        if isinstance(value, str) and value.strip():
            cut = value.strip().encode()[:_LONGEST_ANNOTATION]
            result.annotations[key] = cut.decode(errors="ignore")
