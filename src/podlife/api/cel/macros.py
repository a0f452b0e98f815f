"""Macros: calls that the parser replaces by comprehensions."""

from __future__ import annotations

from collections.abc import Callable

from podlife.api.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

RESULT = "@result"
_UNUSED = "#unused"


class MacroError(Exception):
    """The arguments do not fit the macro."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class _Maker:
    """Makes nodes at the position of the macro's call."""

    def __init__(self, position: int) -> None:
        self.position = position

    def call(self, function: str, *args: Node) -> Node:
        return Call(self.position, function, None, list(args))

    def member(self, function: str, target: Node, *args: Node) -> Node:
        return Call(self.position, function, target, list(args))

    def literal(self, value: bool | int) -> Node:
        return Literal(self.position, value)

    def items(self, *elements: Node) -> Node:
        return ListLiteral(self.position, list(elements))

    @property
    def result(self) -> Node:
        return Ident(self.position, RESULT)

    def fold(self, over: Node, variables: tuple[str, str], parts: tuple[Node, Node, Node, Node]) -> Node:
        return Comprehension(self.position, over, *variables, RESULT, *parts)

    def bind(self, name: str, value: Node, result: Node) -> Node:
        never, same = self.literal(False), Ident(self.position, name)
        return Comprehension(self.position, self.items(), _UNUSED, "", name, value, never, same, result)


def expand(
    position: int, name: str, target: Node | None, args: list[Node], *, with_bind: bool = False
) -> Node | None:
    """The expansion, or None for any other call. Raises MacroError."""
    make = _Maker(position)
    if with_bind and name == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
        if not isinstance(args[0], Ident):
            raise MacroError(args[0].position, "cel.bind() variable names must be simple identifiers")
        return make.bind(args[0].name, args[1], args[2])
    if target is None:
        return _has(args[0], make) if name == "has" and len(args) == 1 else None
    macro = _MACROS.get((name, len(args)))
    return macro(make, target, args) if macro else None


def _has(argument: Node, make: _Maker) -> Node:
    if not isinstance(argument, Select):
        raise MacroError(argument.position, "invalid argument to has() macro")
    return Select(make.position, argument.operand, argument.field_name, test_only=True)


def _variables(args: list[Node], count: int, complaint: str) -> tuple[str, str]:
    names: list[str] = []
    for argument in args[:count]:
        if not isinstance(argument, Ident):
            raise MacroError(argument.position, complaint)
        names.append(argument.name)
    if count == 2 and names[0] == names[1]:
        raise MacroError(args[1].position, f"duplicate variable name: {names[0]}")
    for argument, name in zip(args, names, strict=False):
        if name in (RESULT, "__result__"):
            raise MacroError(argument.position, "iteration variable overwrites accumulator variable")
    return names[0], names[1] if count == 2 else ""


_Macro = Callable[[_Maker, Node, list[Node]], Node]


def _quantifier(kind: str, count: int) -> _Macro:
    def macro(make: _Maker, target: Node, args: list[Node]) -> Node:
        variables = _variables(args, count, "argument must be a simple name")
        predicate = args[count]
        if kind == "one":
            one = make.call("_+_", make.result, make.literal(1))
            step = make.call("_?_:_", predicate, one, make.result)
            result = make.call("_==_", make.result, make.literal(1))
            return make.fold(target, variables, (make.literal(0), make.literal(True), step, result))
        is_all = kind == "all"
        tested = make.result if is_all else make.call("!_", make.result)
        step = make.call("_&&_" if is_all else "_||_", make.result, predicate)
        condition = make.call("@not_strictly_false", tested)
        return make.fold(target, variables, (make.literal(is_all), condition, step, make.result))

    return macro


def _collect(count: int, complaint: str, kind: str = "list") -> _Macro:
    """map, filter and the transformations: they add something to a list or map, perhaps on a condition."""

    def macro(make: _Maker, target: Node, args: list[Node]) -> Node:
        variables = _variables(args, count, complaint)
        condition = args[count] if kind == "filter" or len(args) == count + 2 else None
        if kind in ("list", "filter"):
            added = args[0] if kind == "filter" else args[-1]
            step = make.call("_+_", make.result, make.items(added))
            initial = make.items()
        else:
            inserted = [Ident(make.position, variables[0])] if kind == "map" else []
            step = make.call("cel.@mapInsert", make.result, *inserted, args[-1])
            initial = MapLiteral(make.position, [])
        if condition is not None:
            step = make.call("_?_:_", condition, step, make.result)
        return make.fold(target, variables, (initial, make.literal(True), step, make.result))

    return macro


def _optional(name: str) -> _Macro:
    def macro(make: _Maker, target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            raise MacroError(args[0].position, f"{name}() variable name must be a simple identifier")
        bound = make.bind(args[0].name, make.member("value", target), args[1])
        positive = make.call("optional.of", bound) if name == "optMap" else bound
        return make.call("_?_:_", make.member("hasValue", target), positive, make.call("optional.none"))

    return macro


def _sort_by(make: _Maker, target: Node, args: list[Node]) -> Node:
    if isinstance(target, (Literal, MapLiteral)):
        complaint = (
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
        raise MacroError(target.position, complaint)
    name = "@__sortBy_input__"
    keys = _collect(1, "argument is not an identifier")(make, Ident(make.position, name), args)
    ordered = make.member("@sortByAssociatedKeys", Ident(make.position, name), keys)
    return make.bind(name, target, ordered)


_NAME, _IDENT = "argument must be a simple name", "argument is not an identifier"
_MACROS: dict[tuple[str, int], _Macro] = {
    ("all", 2): _quantifier("all", 1),
    ("exists", 2): _quantifier("exists", 1),
    ("exists_one", 2): _quantifier("one", 1),
    ("existsOne", 2): _quantifier("one", 1),
    ("map", 2): _collect(1, _IDENT),
    ("map", 3): _collect(1, _IDENT),
    ("filter", 2): _collect(1, _IDENT, "filter"),
    ("all", 3): _quantifier("all", 2),
    ("exists", 3): _quantifier("exists", 2),
    ("existsOne", 3): _quantifier("one", 2),
    ("exists_one", 3): _quantifier("one", 2),
    ("transformList", 3): _collect(2, _NAME),
    ("transformList", 4): _collect(2, _NAME),
    ("transformMap", 3): _collect(2, _NAME, "map"),
    ("transformMap", 4): _collect(2, _NAME, "map"),
    ("transformMapEntry", 3): _collect(2, _NAME, "entry"),
    ("transformMapEntry", 4): _collect(2, _NAME, "entry"),
    ("optMap", 2): _optional("optMap"),
    ("optFlatMap", 2): _optional("optFlatMap"),
    ("sortBy", 2): _sort_by,
}
