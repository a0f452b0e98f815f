"""The type checker: resolves names and overloads, and writes types into the tree.

All errors of an expression are found, with cel-go's messages; a part with an error has the type `error`, which fits
everything.
"""

from __future__ import annotations

from podlife.api.cel import types
from podlife.api.cel.declarations import Environment, Overload
from podlife.api.cel.errors import Issue
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
    qualified_name,
)
from podlife.api.cel.types import BOOL, DYN, ERROR, INT, CelType, is_dyn, optional_of, unwrap_optional
from podlife.api.cel.values import literal_type

_NOT_CONSTRUCTIBLE = frozenset({"bool", "bytes", "double", "int", "string", "uint", "type", "opaque"})


def check(tree: Node, environment: Environment) -> list[Issue]:
    """What is wrong; if nothing, every node knows its type."""
    checker = _Checker(environment)
    checker.check(tree)
    for node in checker.seen:
        node.type = checker.known.resolve(node.type, free_to_dyn=True)
    return checker.issues


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.issues: list[Issue] = []
        self.known = types.Substitutions()
        self.scopes: list[dict[str, CelType]] = []
        self.seen: list[Node] = []

    def report(self, node_position: int, message: str) -> None:
        self.issues.append(Issue(node_position, message))

    def check(self, node: Node) -> None:
        self.seen.append(node)
        match node:
            case Literal():
                node.type = literal_type(node.value)
            case Ident():
                self.check_ident(node)
            case Select():
                self.check_select(node)
            case Call():
                self.check_call(node)
            case ListLiteral():
                self.check_list(node)
            case MapLiteral():
                self.check_map(node)
            case StructLiteral():
                self.check_struct(node)
            case Comprehension():
                self.check_comprehension(node)

    def lookup(self, name: str) -> tuple[CelType, CelType | None] | None:
        """The type of a name, and which type it names if it does."""
        if not name.startswith("."):
            for scope in reversed(self.scopes):
                if name in scope:
                    return scope[name], None
        name = name.removeprefix(".")
        if (variable := self.environment.variables.get(name)) is not None:
            return variable, None
        if (named := self.environment.type_named(name)) is not None:
            return types.type_of(named), named
        return None

    def undeclared(self, node: Node, name: str) -> None:
        self.report(node.position, f"undeclared reference to '{name}' (in container '')")
        node.type = ERROR

    def check_ident(self, node: Ident) -> None:
        found = self.lookup(node.name)
        if found is None:
            self.undeclared(node, node.name)
        else:
            node.type, node.constant = found

    def check_select(self, node: Select) -> None:
        name = None if node.test_only else qualified_name(node)
        if name is not None and (found := self.lookup(name)) is not None:
            node.type = found[0]
            # A variable or a type with dots in its name: the planner reads it from here.
            whole: Node = Ident(node.position, name) if found[1] is None else Literal(node.position, found[1])
            whole.type = node.type
            node.operand, node.field_name = whole, ""
            return
        result = self.field_type(node, node.operand, node.field_name, optional=False)
        node.type = BOOL if node.test_only else result

    def field_type(self, node: Node, operand: Node, name: str, *, optional: bool) -> CelType:
        self.check(operand)
        target, is_optional = unwrap_optional(self.known.resolve(operand.type))
        result = DYN
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            found = target.fields.get(name)
            if found is None:
                self.report(node.position, f"undefined field '{name}'")
            result = found or ERROR
        elif target.kind == "parameter":
            self.known.unify([DYN], [target])
        elif target.kind not in ("dyn", "error"):
            self.report(node.position, f"type '{target}' does not support field selection")
        return self.known.resolve(optional_of(result) if optional or is_optional else result)

    def check_call(self, node: Call) -> None:
        if node.function == "_?._":
            operand, name = node.args
            assert isinstance(name, Literal)
            node.type = self.field_type(node, operand, name.value, optional=True)
            node.overloads = ("select_optional_field",)
            return
        for argument in node.args:
            self.check(argument)
        if node.target is not None:
            prefix = qualified_name(node.target)
            qualified = f"{prefix}.{node.function}" if prefix else ""
            if qualified and self.environment.overloads(qualified) is not None:
                node.function, node.target = qualified.removeprefix("."), None
            else:
                self.check(node.target)
        overloads = self.environment.overloads(node.function)
        if overloads is None:
            self.undeclared(node, node.function)
            return
        node.function = node.function.removeprefix(".")
        if node.function in ("_&&_", "_||_"):
            self.check_logic(node)
            return
        self.resolve_overload(node, overloads)

    def check_logic(self, node: Call) -> None:
        node.type = BOOL
        node.overloads = ("logical_and" if node.function == "_&&_" else "logical_or",)
        for argument in node.args:
            if not self.known.unify([argument.type], [BOOL]):
                self.mismatch(argument.position, BOOL, argument.type)
                node.type = ERROR

    def resolve_overload(self, node: Call, overloads: tuple[Overload, ...]) -> None:
        given = [argument.type for argument in node.args]
        if node.target is not None:
            given.insert(0, node.target.type)
        result: CelType | None = None
        chosen: list[str] = []
        for overload in overloads:
            if overload.is_member != (node.target is not None):
                continue
            signature = list(overload.signature)
            if overload.is_generic:
                signature = self.known.instantiate(signature)
            if not self.known.unify(given, signature[1:]):
                continue
            chosen.append(overload.name)
            returned = self.known.resolve(signature[0])
            if result is None:
                result = returned
            elif not is_dyn(result) and not types.is_exact(returned, result):
                result = DYN
        if result is None:
            self.no_overload(node, given)
            result = ERROR
        node.type, node.overloads = result, tuple(chosen)

    def no_overload(self, node: Call, given: list[CelType]) -> None:
        shown = [str(self.known.resolve(one, free_to_dyn=True)) for one in given]
        target = f"{shown.pop(0)}." if node.target is not None else ""
        applied = f"{target}({', '.join(shown)})"
        self.report(node.position, f"found no matching overload for '{node.function}' applied to '{applied}'")

    def mismatch(self, position: int, wanted: CelType, found: CelType) -> None:
        self.report(position, f"expected type '{wanted}' but found '{found}'")

    def unwrapped(self, node: Node, is_optional: bool) -> CelType:
        if not is_optional:
            return node.type
        inner, was_optional = unwrap_optional(node.type)
        if not was_optional and not is_dyn(inner):
            self.mismatch(node.position, optional_of(inner), inner)
        return inner

    def join(self, before: CelType | None, current: CelType) -> CelType:
        """Mixed literals are refused later, where they are not arguments of `format`."""
        if before is None:
            return current
        return types.most_general(before, current) if self.known.unify([before], [current]) else DYN

    def check_list(self, node: ListLiteral) -> None:
        joined: CelType | None = None
        for index, element in enumerate(node.elements):
            self.check(element)
            joined = self.join(joined, self.unwrapped(element, index in node.optional))
        node.type = types.list_of(joined or self.known.fresh())

    def check_map(self, node: MapLiteral) -> None:
        keys: CelType | None = None
        values: CelType | None = None
        for entry in node.entries:
            self.check(entry.key)
            keys = self.join(keys, entry.key.type)
            self.check(entry.value)
            values = self.join(values, self.unwrapped(entry.value, entry.optional))
        node.type = types.map_of(keys or self.known.fresh(), values or self.known.fresh())

    def check_struct(self, node: StructLiteral) -> None:
        found = self.lookup(node.name)
        if found is None:
            self.undeclared(node, node.name)
            return
        named = found[1]
        node.type = ERROR
        if named is None:
            self.report(node.position, f"'{found[0]}' is not a type")
        elif named.kind in _NOT_CONSTRUCTIBLE:
            self.report(node.position, f"'{named.name}' is not a message type")
        else:
            node.type = named
        for entry in node.entries:
            self.check(entry.value)
            wanted = named.fields.get(entry.name) if named else None
            if wanted is None:
                unknown = f"undefined field '{entry.name}'"
                failed = f"unexpected failed resolution of '{node.name}'"
                self.report(entry.position, unknown if named else failed)
                continue
            given = self.unwrapped(entry.value, entry.optional)
            if not self.known.unify([wanted], [given]):
                text = f"expected type of field '{entry.name}' is '{wanted}' but provided type is '{given}'"
                self.report(entry.position, text)

    def check_comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.initial)
        ranged = self.known.resolve(node.range.type)
        two = bool(node.variable2)
        match ranged.kind:
            case "list":
                first = INT if two else ranged.parameters[0]
                second = ranged.parameters[0]
            case "map":
                first, second = ranged.parameters
            case "dyn" | "error" | "parameter" if ranged.name != "any":
                self.known.unify([DYN], [ranged])
                first = second = DYN
            case _:
                text = "cannot be range of a comprehension (must be list, map, or dynamic)"
                self.report(node.range.position, f"expression of type '{ranged}' {text}")
                first = second = ERROR
        loop = {node.variable: first} | ({node.variable2: second} if two else {})
        self.scopes += [{node.accumulator: node.initial.type}, loop]
        self.check(node.condition)
        self.assert_type(node.condition, BOOL)
        self.check(node.step)
        self.assert_type(node.step, node.initial.type)
        self.scopes.pop()
        self.check(node.result)
        self.scopes.pop()
        node.type = self.known.resolve(node.result.type)

    def assert_type(self, node: Node, wanted: CelType) -> None:
        if not self.known.unify([wanted], [node.type]):
            self.mismatch(node.position, wanted, node.type)
