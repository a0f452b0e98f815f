"""Compiles the expressions of one policy, or one match condition. What does not compile says why when it is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from podlife.api import cel
from podlife.api.cel import BOOL, DYN, STRING, CelType, list_of, parse_type, struct
from podlife.apiserver.expressions.environment import Declarations
from podlife.memory import emptied_with_memory

ANNOTATION_TYPES: tuple[CelType, ...] = (STRING, parse_type("null"))
"""What the value of an audit annotation may evaluate to."""
PATCH_TYPES = {"ApplyConfiguration": struct("Object"), "JSONPatch": list_of(struct("JSONPatch"))}
"""What the expression of a mutation must evaluate to, by the type of patch."""
_MOST_CONDITIONS_KEPT = 1024
# Names that Go prints, where they are not those of the checker's messages.
_GO_NAMES = {
    "any": "google.protobuf.Any",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
# Types that a composed variable keeps; others become dynamic.
_COMPOSABLE = frozenset(
    {"bool", "bytes", "double", "duration", "int", "null", "string", "timestamp", "uint", "list", "map"}
)


@dataclass(frozen=True, slots=True)
class Expression:
    """If the source does not compile, `program` is None and `problem` has the reason."""

    source: str
    program: cel.Program | None = None
    problem: str = ""


class ExpressionCompiler:
    """Each variable is known to the expressions that are compiled after it."""

    def __init__(self, declarations: Declarations) -> None:
        self._types: dict[str, CelType] = dict(declarations.variables or {})
        # The same dictionary for all expressions: a copy for each would make many variables expensive.
        is_composed = declarations.variables is not None
        self._declarations = replace(declarations, variables=self._types if is_composed else None)
        self.variables: dict[str, Expression] = {}

    def add_variable(self, name: str, source: str) -> Expression:
        found = self.compile(source)
        self._types[name] = _composed(found.program.type) if found.program is not None else DYN
        self.variables[name] = found
        return found

    def compile(
        self, source: str, *wanted: CelType, has_authorizer: bool = True, has_patch_types: bool = False
    ) -> Expression:
        """`wanted` are the types that it may evaluate to; any if there are none."""
        declarations = replace(
            self._declarations, has_authorizer=has_authorizer, has_patch_types=has_patch_types
        )
        return _compiled(source, declarations, *wanted)


@emptied_with_memory
@lru_cache(maxsize=_MOST_CONDITIONS_KEPT)
def compile_condition(source: str, *, has_params: bool = False) -> Expression:
    """A match condition, which has no composed variables."""
    return _compiled(source, Declarations(has_params=has_params), BOOL)


def _compiled(source: str, declarations: Declarations, *wanted: CelType) -> Expression:
    try:
        program = cel.compile(source, declarations.environment())
    except cel.CelError as error:
        return Expression(source, problem=f"compilation failed: {error}")
    given, known = go_type_name(program.type), [go_type_name(each) for each in wanted]
    if known and given not in known:
        what = known[0] if len(known) == 1 else f"one of [{' '.join(known)}]"
        return Expression(source, problem=f"must evaluate to {what} but got {given}")
    return Expression(source, program)


def go_type_name(one: CelType) -> str:
    """The name of a type as Go prints it."""
    name = _GO_NAMES.get(one.name, one.name)
    return f"{name}({', '.join(map(go_type_name, one.parameters))})" if one.parameters else name


def _composed(one: CelType) -> CelType:
    if one.kind not in _COMPOSABLE:
        return DYN
    return replace(one, parameters=tuple(map(_composed, one.parameters))) if one.parameters else one
