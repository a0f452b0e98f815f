"""The estimated cost of an expression: the least and the most that evaluating it may cost, for any values of the
declared sizes.

Upstream decides by the most whether a CustomResourceDefinition may be stored, so that it is computed exactly as
cel-go and Kubernetes do. Where a size is unknown, it is taken as unlimited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from podlife.api.cel.call_estimate import CallEstimate, Operand, estimate_call
from podlife.api.cel.ranges import FREE, UNKNOWN, Range, fixed
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
from podlife.api.cel.types import SCALARS, CelType, unwrap_optional

Path = tuple[str, ...]


class _Entries(NamedTuple):
    """Sizes of the keys and values of a container."""

    kind: str
    key: Range
    value: Range

    def union(self, other: _Entries | None) -> _Entries | None:
        return other and _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: Range | None
    entries: _Entries | None


def estimate(tree: Node, variables: Mapping[str, CelType]) -> Range:
    """`variables` have types with sizes where a schema gives them."""
    return _Estimator(variables).cost(tree)


class _Estimator:
    def __init__(self, variables: Mapping[str, CelType]) -> None:
        self.variables = variables
        self.locals: dict[str, list[_Local]] = {}
        self.paths: dict[Node, Path] = {}
        self.sizes: dict[Node, Range] = {}
        self.entries: dict[Node, _Entries] = {}

    def cost(self, node: Node) -> Range:
        match node:
            case Ident():
                local = self.local(node.name)
                self.paths[node] = local.path if local else (node.name.removeprefix("."),)
                return fixed(1)
            case Select():
                return self.cost_select(node)
            case Call():
                return self.cost_call(node)
            case ListLiteral():
                return self.cost_list(node)
            case MapLiteral():
                return self.cost_map(node)
            case StructLiteral():
                return sum((self.cost(entry.value) for entry in node.entries), start=fixed(40))
            case Comprehension():
                return self.cost_bind(node) if node.is_bind else self.cost_comprehension(node)
        return FREE

    def local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def path(self, node: Node) -> Path:
        if isinstance(node, Ident) and (local := self.local(node.name)):
            return local.path
        return self.paths.get(node, ())

    def cost_select(self, node: Select) -> Range:
        if not node.field_name:
            return fixed(1)
        total = self.cost(node.operand)
        if node.test_only:
            return total
        if node.operand.type.kind in ("map", "struct", "parameter"):
            total += fixed(1)
        self.paths[node] = (*self.path(node.operand), node.field_name)
        return total

    def cost_call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = fixed(1) + self.cost(node.args[0])
            self.copy_sizes(node, node.args[0])
            return total
        costs = [self.cost(argument) for argument in node.args]
        operands = [self.operand(argument) for argument in node.args]
        total, target = FREE, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.operand(node.target)
        covered = Range(2**64 - 1, 0)
        result: Range | None = None
        for overload in node.overloads:
            call = self.cost_overload(node, overload, target, operands, costs)
            covered = covered.union(call.cost)
            if call.result is not None:
                result = call.result if result is None else result.union(call.result)
            if overload in ("index_list", "index_map"):
                container = self.entries_of(node.args[0])
                result = container.value if container else None
                below = "@items" if overload == "index_list" else "@values"
                self.paths[node] = (*self.path(node.args[0]), below)
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[node] = result
        return total + covered if node.overloads else FREE

    def cost_overload(
        self, node: Call, overload: str, target: Operand | None, operands: list[Operand], costs: list[Range]
    ) -> CallEstimate:
        arguments = sum(costs, start=FREE)
        if overload in ("logical_or", "logical_and"):
            return CallEstimate(Range(costs[0].least, (costs[0] + costs[1]).most))
        if overload == "conditional":
            first, second = self.entries_of(node.args[1]), self.entries_of(node.args[2])
            if first and second and (joined := first.union(second)):
                self.entries[node] = joined
            chosen = costs[0] + costs[1].union(costs[2])
            return CallEstimate(chosen, operands[1].size.union(operands[2].size))
        if overload in ("add_string", "add_bytes", "add_list"):
            first, second = self.entries_of(node.args[0]), self.entries_of(node.args[1])
            if first and second and (joined := first.union(second)):
                self.entries[node] = joined
        found = estimate_call(node.function, overload, target, operands, self.element)
        return replace(found, cost=found.cost + arguments)

    def operand(self, node: Node) -> Operand:
        path = self.path(node)
        if path and path[0] in ("__result__", "@result"):
            path = ()
        return Operand(node, node.type, path, self.size(node))

    def element(self, container: Operand) -> Operand | None:
        """An element of a list, as far as the schema tells its size."""
        if not container.type.parameters:
            return None
        path = (*container.path, "@items") if container.path else ()
        return Operand(None, container.type.parameters[0], path, self.declared_size(path))

    def declared_size(self, path: Path) -> Range | None:
        """What the schema says about a value that is reached from a variable."""
        if not path or path[0] not in self.variables:
            return None
        current = unwrap_optional(self.variables[path[0]])[0]
        for name in path[1:]:
            below: CelType | None
            if name in ("@items", "@values"):
                below = current.parameters[-1] if current.kind in ("list", "map") else None
            elif name == "@keys":
                below = current.parameters[0] if current.kind == "map" else None
            else:
                below = current.fields.get(name)
            if below is None:
                return None
            current = below
        return Range(0, current.max_elements) if current.min_size else None

    def size(self, node: Node) -> Range | None:
        if node in self.sizes:
            return self.sizes[node]
        if (literal := _literal_size(node)) is not None:
            return fixed(literal)
        if (declared := self.declared_size(self.path(node))) is not None:
            self.sizes[node] = declared
            return declared
        if unwrap_optional(node.type)[0].kind in SCALARS:
            return fixed(1)
        if isinstance(node, Ident) and (local := self.local(node.name)):
            return local.size
        return None

    def entries_of(self, node: Node) -> _Entries | None:
        if node in self.entries:
            return self.entries[node]
        if isinstance(node, Ident) and (local := self.local(node.name)):
            return local.entries
        return None

    def copy_sizes(self, target: Node, source: Node) -> None:
        if (found := self.size(source)) is not None:
            self.sizes[target] = found
        if (entries := self.entries_of(source)) is not None:
            self.entries[target] = entries

    def union_of_sizes(self, nodes: Sequence[Node]) -> Range:
        if not nodes:
            return FREE
        total = Range(2**64 - 1, 0)
        for node in nodes:
            total = total.union(self.size(node) or UNKNOWN)
        return total

    def cost_list(self, node: ListLiteral) -> Range:
        total = sum((self.cost(element) for element in node.elements), start=fixed(10))
        self.entries[node] = _Entries("list", fixed(1), self.union_of_sizes(node.elements))
        return total

    def cost_map(self, node: MapLiteral) -> Range:
        total = fixed(30)
        for entry in node.entries:
            total += self.cost(entry.key) + self.cost(entry.value)
        key = self.union_of_sizes([entry.key for entry in node.entries])
        value = self.union_of_sizes([entry.value for entry in node.entries])
        self.entries[node] = _Entries("map", key, value)
        return total

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Node) -> None:
        self.push(name, _Local(self.path(node), self.size(node), self.entries_of(node)))

    def push_iteration(self, name: str, over: Node, part: str) -> None:
        """`part` of what is iterated over: its keys, its values, or what one variable stands for."""
        entries = self.entries_of(over)
        is_list = (entries.kind if entries else over.type.kind) == "list"
        if part == "single":
            part = "value" if is_list else "key"
        below = (
            ("@items" if is_list else "@values") if part == "value" else "@indices" if is_list else "@keys"
        )
        size = (entries.value if part == "value" else entries.key) if entries else None
        self.push(name, _Local((*self.path(over), below), size, None))

    def cost_comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.initial)
        self.push_value(node.accumulator, node.initial)
        if node.variable2:
            self.push_iteration(node.variable, node.range, "key")
            self.push_iteration(node.variable2, node.range, "value")
        else:
            self.push_iteration(node.variable, node.range, "single")
        each = self.cost(node.condition)
        each = self.cost(node.step) + each
        self.locals[node.variable].pop()
        if node.variable2:
            self.locals[node.variable2].pop()
        total += self.cost(node.result)
        self.locals[node.accumulator].pop()
        count = self.size(node.range) or UNKNOWN
        total += count.times(each)
        if isinstance(node.initial, Literal):
            if (size := self.size(node.initial)) is not None:
                self.sizes[node] = size
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self.sizes[node] = count
            if (entries := self.entries_of(node.step)) is not None:
                self.entries[node] = entries
        return total

    def cost_bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.initial)
        self.push_value(node.accumulator, node.initial)
        total += self.cost(node.result)
        self.copy_sizes(node, node.result)
        self.locals[node.accumulator].pop()
        return total


def _literal_size(node: Node) -> int | None:
    match node:
        case Literal(value=str() | bytes() as value):
            return len(value)
        case Literal():
            return 1
        case ListLiteral():
            return len(node.elements)
        case MapLiteral():
            return len(node.entries)
    return None
