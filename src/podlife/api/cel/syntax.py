"""The syntax tree of an expression. Nodes compare by identity; the checker writes `type` and `overloads` into them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podlife.api.cel.types import DYN, CelType


@dataclass(eq=False, slots=True)
class Node:
    """`position` is the offset that errors about this node point at."""

    position: int
    type: CelType = field(default=DYN, init=False)
    overloads: tuple[str, ...] = field(default=(), init=False)


@dataclass(eq=False, slots=True)
class Literal(Node):
    value: Any


@dataclass(eq=False, slots=True)
class Ident(Node):
    name: str
    # The name is that of a type, which is a constant.
    constant: CelType | None = field(default=None, init=False)


@dataclass(eq=False, slots=True)
class Select(Node):
    operand: Node
    field_name: str
    test_only: bool = False


@dataclass(eq=False, slots=True)
class Call(Node):
    function: str
    target: Node | None
    args: list[Node]


@dataclass(eq=False, slots=True)
class ListLiteral(Node):
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class MapEntry:
    position: int
    key: Node
    value: Node
    optional: bool


@dataclass(eq=False, slots=True)
class MapLiteral(Node):
    entries: list[MapEntry]


@dataclass(eq=False, slots=True)
class FieldEntry:
    position: int
    name: str
    value: Node
    optional: bool


@dataclass(eq=False, slots=True)
class StructLiteral(Node):
    name: str
    entries: list[FieldEntry]


@dataclass(eq=False, slots=True)
class Comprehension(Node):
    """A fold over `range`: every macro that loops becomes one."""

    range: Node
    variable: str
    variable2: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node

    @property
    def is_bind(self) -> bool:
        """A fold over nothing, which only names the value of `initial`."""
        empty = isinstance(self.range, ListLiteral) and not self.range.elements
        never = isinstance(self.condition, Literal) and self.condition.value is False
        return empty and never and self.accumulator != "__result__"


def qualified_name(node: Node) -> str | None:
    """`a.b.c` where the node is that and nothing else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field_name)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(names)])
