"""A situation: a stored object, and the cells that kube-apiserver v1.36 prints for it.

`ANY_AGE` stands for a cell with the age of the object: those are tested separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from podlife.apiserver.resource_table import RESOURCES

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC).timestamp()
ANY_AGE = "<age>"


@dataclass(frozen=True)
class Situation:
    name: str
    obj: dict[str, Any]
    cells: list[Any]

    def __str__(self) -> str:
        return f"{self.obj['kind']}-{self.name}"


def at(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def named(name: str, *, deleting: bool = False, **metadata: Any) -> dict[str, Any]:
    """Metadata of an object that is ten minutes old."""
    found = {"name": name, "creationTimestamp": at(NOW - 600), **metadata}
    if deleting:
        found["deletionTimestamp"] = at(NOW)
    return found


def shown(obj: dict[str, Any]) -> list[Any]:
    """What is printed for the object, with any age."""
    printer = PRINTERS[obj["kind"]]
    cells = printer.cells(obj, NOW)
    pairs = zip(cells, printer.columns, strict=True)
    return [ANY_AGE if column.name == "Age" else cell for cell, column in pairs]


PRINTERS = {resource.kind: resource.printer for resource in RESOURCES if resource.printer is not None}
