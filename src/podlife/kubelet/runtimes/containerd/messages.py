"""The messages of CRI v1, and of containerd's own API beyond it, as far as they are used.

The classes are built on first use from tables of names and numbers, so that no generated code ties them to a version of
protobuf. Fields that are not in a table are ignored when a message is parsed, as protobuf specifies.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .cri_table import CRI

# In the format of the CRI table.
_CONTAINERD = """
SubscribeRequest filters=1*
Any type_url=1 value=2:bytes
Envelope namespace=2 topic=3 event=4:Any
TaskExit container_id=1 id=2
ListPidsRequest container_id=1
ProcessInfo pid=1:uint32 info=2:Any
ListPidsResponse processes=1:ProcessInfo*
"""
_KINDS = {"": 9, "string": 9, "bool": 8, "int32": 5, "uint32": 13, "int64": 3, "uint64": 4, "bytes": 12}
_MESSAGE, _REPEATED, _OPTIONAL = 11, 3, 1


@cache
def message(name: str) -> Any:
    """The class of a message by its name in CRI or in containerd's own API."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"podlife.cri.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(CRI + _CONTAINERD))
    return pool


def _file(table: str) -> Any:
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(
        name="podlife/cri.proto", package="podlife.cri", syntax="proto3"
    )
    for name, *fields in filter(None, map(str.split, table.splitlines())):
        owner = file.message_type.add(name=name)
        for text in fields:
            _add_field(owner, text)
    return file


def _add_field(owner: Any, text: str) -> None:
    """Add a field in the table's format, for example `mounts=7:Mount*`."""
    name, _, rest = text.partition("=")
    number, _, kind = rest.rstrip("*%").partition(":")
    field = owner.field.add(name=name, number=int(number), label=_REPEATED if rest[-1] in "*%" else _OPTIONAL)
    if rest.endswith("%"):
        kind = f"{owner.name}.{_add_entry(owner, name)}"
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = _MESSAGE, f".podlife.cri.{kind}"


def _add_entry(owner: Any, name: str) -> str:
    entry = owner.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, part in enumerate(("key", "value"), start=1):
        entry.field.add(name=part, number=number, label=_OPTIONAL, type=_KINDS["string"])
    return str(entry.name)
