"""What Kubernetes refuses although the types are right: mixed literals, constants that cannot be parsed."""

from __future__ import annotations

from collections.abc import Iterator

from podlife.api.cel.errors import EvaluationError, Issue
from podlife.api.cel.library.string_format import COMPLAINTS, ClauseError, interpret
from podlife.api.cel.operators import to_duration, to_timestamp
from podlife.api.cel.regex import compile_pattern
from podlife.api.cel.syntax import (
    Call,
    Comprehension,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from podlife.api.cel.types import CelType, is_exact, unwrap_optional

_NUMBERS = frozenset({"int", "uint"})
_KINDS = {
    "d": _NUMBERS, "o": _NUMBERS, "b": _NUMBERS | {"bool"}, "x": _NUMBERS | {"string", "bytes"},
    "X": _NUMBERS | {"string", "bytes"}, "f": frozenset({"double", "string"}), "e": frozenset({"double", "string"}),
    "s": frozenset({
        "list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null",
    }),
}  # fmt: skip
_TYPE_NAMES = {
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
}


def children(node: Node) -> Iterator[Node]:
    match node:
        case Select():
            yield node.operand
        case Call():
            if node.target is not None:
                yield node.target
            yield from node.args
        case ListLiteral():
            yield from node.elements
        case MapLiteral():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case StructLiteral():
            yield from (entry.value for entry in node.entries)
        case Comprehension():
            yield from (node.range, node.initial, node.condition, node.step, node.result)


def validate(tree: Node) -> list[Issue]:
    issues: list[Issue] = []
    pending: list[tuple[Node, bool]] = [(tree, False)]
    while pending:
        node, in_format = pending.pop()
        if isinstance(node, (ListLiteral, MapLiteral)) and not in_format:
            issues.extend(_mixed(node))
        if isinstance(node, Call):
            issues.extend(_constants(node))
            in_format = in_format or node.function == "format"
        pending.extend((child, in_format) for child in children(node))
    # A macro may use a part twice.
    return list(dict.fromkeys(issues))


def _mixed(node: ListLiteral | MapLiteral) -> Iterator[Issue]:
    if isinstance(node, ListLiteral):
        found = [
            (element, _unwrapped(element.type, index in node.optional))
            for index, element in enumerate(node.elements)
        ]
        yield from list(_differing(found))[:1]
        return
    yield from _differing([(entry.key, entry.key.type) for entry in node.entries])
    yield from _differing(
        [(entry.value, _unwrapped(entry.value.type, entry.optional)) for entry in node.entries]
    )


def _unwrapped(one: CelType, is_optional: bool) -> CelType:
    return unwrap_optional(one)[0] if is_optional else one


def _differing(found: list[tuple[Node, CelType]]) -> Iterator[Issue]:
    for node, one in found[1:]:
        if not is_exact(found[0][1], one):
            yield Issue(node.position, f"expected type '{found[0][1]}' but found '{one}'")


def _constants(node: Call) -> Iterator[Issue]:
    first = node.args[0] if node.args else None
    if node.function == "format" and isinstance(node.target, Literal) and isinstance(first, ListLiteral):
        if isinstance(node.target.value, str):
            yield from _format_clauses(node, node.target.value, first.elements)
        return
    if not isinstance(first, Literal) or node.function not in ("duration", "timestamp", "matches"):
        return
    convert = {"duration": to_duration, "timestamp": to_timestamp, "matches": compile_pattern}[node.function]
    try:
        convert(first.value)
    except (EvaluationError, ValueError, TypeError):
        yield Issue(first.position, f"invalid {node.function} argument")


def _format_clauses(node: Call, text: str, elements: list[Node]) -> Iterator[Issue]:
    def clause(index: int, letter: str, _precision: int | None) -> str:
        bad = _unfit(elements[index], letter)
        if bad is not None:
            shown = _TYPE_NAMES.get(bad.type.kind, bad.type.name)
            raise _UnfitError(
                bad.position, f"error during formatting: {COMPLAINTS[letter]}, was given {shown}"
            )
        return ""

    try:
        used = interpret(text, len(elements), clause)[1]
    except _UnfitError as error:
        yield Issue(error.position, str(error))
        return
    except ClauseError as error:
        yield Issue(node.position, str(error))
        return
    if len(elements) > used:
        text = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        yield Issue(node.position, text)


class _UnfitError(Exception):
    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


def _unfit(node: Node, letter: str) -> Node | None:
    """The argument, or the part of it, that the clause does not take."""
    if node.type.kind != "dyn" and node.type.kind not in _KINDS[letter]:
        return node
    if letter == "s" and isinstance(node, (ListLiteral, MapLiteral)):
        return next((bad for child in children(node) if (bad := _unfit(child, letter)) is not None), None)
    return None
