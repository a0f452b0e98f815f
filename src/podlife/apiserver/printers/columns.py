"""The columns of every table, as the real server describes them, and the printer for kinds without one.

`columns.json` is written by `tools/record_columns.py`; nothing in it is typed by hand.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.apiserver.resource import Column, Printer

__all__ = ["PLAIN", "columns"]


_decode = msgspec.json.Decoder(dict[str, tuple[Column, ...]]).decode


@cache
def _recorded() -> dict[str, tuple[Column, ...]]:
    return _decode(Path(__file__).with_name("columns.json").read_bytes())


def columns(key: str) -> tuple[Column, ...]:
    """The columns of the resource with this key (`pods`, `deployments.apps`)."""
    return _recorded()[key]


def _plain_cells(obj: Object, now: float) -> list[Any]:
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp", "0001-01-01T00:00:00Z")]


def _plain_columns() -> tuple[Column, ...]:
    # The name and the age of a pod have the descriptions that the real server gives to these two.
    pod = {column.name: column for column in columns("pods")}
    return (pod["Name"], Column("Created At", pod["Age"].description, "date"))


PLAIN = Printer(_plain_columns(), _plain_cells)
"""For kinds that have no printer of their own: the name and when it was created."""
