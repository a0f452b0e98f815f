"""JSON patch (RFC 6902), with the deviations of the library upstream uses, and JSON merge patch (RFC 7386).

Like that library, it is laxer than the RFC: an index may be negative, counting from the end; `replace` of a missing
field adds it; `test` for null succeeds on a missing field; an omitted value is null.

A small patch can be expensive: copies of copies, or ten thousand insertions before a million elements. The number of
bytes copied and elements moved by a patch is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from podlife.api.patch.errors import PatchError, does_not_apply, too_much
from podlife.api.schema import go_kind

_MOST_OPERATIONS = 10_000
_MOST_COPIED_BYTES = 3 * 1024 * 1024
# Ten thousand operations on a list of a thousand elements.
_MOST_SHIFTED_ELEMENTS = 10_000_000
_FIELDS = frozenset({"op", "path", "from", "value"})
_is_index = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
# Causes that upstream shows with the operation and its path.
_UNPLACED = ("Unable to ", "value was not ")
# A copy of plain JSON values, made in C.
_copied = msgspec.to_builtins

Operation = dict[str, Any]


@dataclass(slots=True)
class _Effort:
    """Cost of a patch so far."""

    copied_bytes: int = 0
    shifted_elements: int = 0

    def copied(self, value: Any) -> Any:
        self.copied_bytes += len(msgspec.json.encode(value))
        if self.copied_bytes > _MOST_COPIED_BYTES:
            raise does_not_apply(
                f"Unable to complete the copy, the accumulated size increase of copy is {self.copied_bytes}, "
                f"exceeding the limit {_MOST_COPIED_BYTES}"
            )
        return _copied(value)

    def shift(self, elements: list[Any], index: int) -> None:
        """Account for an insertion or removal at `index`, which moves all following elements."""
        self.shifted_elements += len(elements) - index
        if self.shifted_elements > _MOST_SHIFTED_ELEMENTS:
            raise too_much(f"A JSON patch may move at most {_MOST_SHIFTED_ELEMENTS} elements of lists")


def json_patch(obj: dict[str, Any], operations: Any) -> Any:
    """Return the result of the operations, which shares nothing with the arguments.

    It need not be an object: replacing the root may give a list. Raises PatchError."""
    checked = _checked(operations)
    document = _copied(obj)
    effort = _Effort()
    for operation in checked:
        document = _apply(document, operation or {}, effort)
    return document


def unknown_operation_fields(operations: Any) -> list[str]:
    """Unknown fields of the operations, in the words of strict validation."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations or ())
        for name in operation or ()
        if name not in _FIELDS
    ]


def _checked(operations: Any) -> list[Operation | None]:
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name), str | None):
                raise _undecodable(operation[name], f"Go struct field jsonPatchOp.{name} of type string")
    if len(operations) > _MOST_OPERATIONS:
        raise too_much(
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(operations)}"
        )
    return operations


def _undecodable(value: Any, target: str) -> Exception:
    return PatchError(f"error decoding patch: json: cannot unmarshal {go_kind(value)} into {target}")


def _apply(document: Any, operation: Operation, effort: _Effort) -> Any:
    name = operation.get("op")
    if name not in _OPERATIONS:
        raise does_not_apply(f"Unexpected kind: {name or 'unknown'}")
    path = operation.get("path")
    if path is None:
        raise does_not_apply(f"{name} operation failed to decode path: missing value")
    if path == "" and name == "replace":
        value = operation.get("value")
        if not isinstance(value, dict | list):
            raise does_not_apply("replace operation value must be object or array")
        return _copied(value)
    if path == "" and name == "test":
        if not _same(document, operation.get("value")):
            raise does_not_apply("testing value  failed: test failed")
        return document
    try:
        _OPERATIONS[name](document, path, operation, effort)
    except PatchError as error:
        if error.cause.startswith(_UNPLACED):
            error.cause = f"error in {name} for path: '{path}': {error.cause}"
        raise
    return document


def _locate(document: Any, path: str, name: str) -> tuple[Any, str]:
    """The container that the path leads into, and the last key."""
    _, *parts = path.split("/")
    if parts:
        keys = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        for key in keys[:-1]:
            document = _child(document, key)
        if isinstance(document, dict | list):
            return document, keys[-1]
    raise does_not_apply(f'{name} operation does not apply: doc is missing path: "{path}": missing value')


def _child(container: Any, key: str) -> Any:
    """The value of the key; None if it is missing."""
    if isinstance(container, dict):
        return container.get(key)
    if isinstance(container, list) and _is_index(key) and -len(container) <= int(key) < len(container):
        return container[int(key)]
    return None


def _index(items: list[Any], key: str, length: int) -> int:
    """The index that a key denotes in a list with `length` addressable positions."""
    if not _is_index(key):
        raise does_not_apply(f"value was not a proper array index: '{key}'")
    index = int(key)
    if not -length <= index < length:
        raise does_not_apply(f"Unable to access invalid index: {index}: invalid index referenced")
    return index if index >= 0 else index + length


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(container, key, len(container))]


def _insert(container: Any, key: str, value: Any, effort: _Effort) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        index = _index(container, key, len(container) + 1)
        effort.shift(container, index)
        container.insert(index, value)


def _delete(container: Any, key: str, effort: _Effort) -> None:
    if isinstance(container, list):
        index = _index(container, key, len(container))
        effort.shift(container, index)
        del container[index]
    elif key in container:
        del container[key]
    else:
        raise does_not_apply(f"Unable to remove nonexistent key: {key}: missing value")


def _add(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, path, "add")
    _insert(container, key, _copied(operation.get("value")), effort)


def _remove(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, path, "remove")
    _delete(container, key, effort)


def _replace(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, path, "replace")
    value = _copied(operation.get("value"))
    if isinstance(container, list):
        container[_index(container, key, len(container))] = value
    else:
        container[key] = value


def _move(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, _source(operation, "move"), "move")
    value = _get(container, key)
    _delete(container, key, effort)
    container, key = _locate(document, path, "move")
    _insert(container, key, value, effort)


def _copy(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, _source(operation, "copy"), "copy")
    value = _get(container, key)
    container, key = _locate(document, path, "copy")
    _insert(container, key, effort.copied(value), effort)


def _test(document: Any, path: str, operation: Operation, effort: _Effort) -> None:
    container, key = _locate(document, path, "test")
    if not _same(_get(container, key), operation.get("value")):
        raise does_not_apply(f"testing value {path} failed: test failed")


def _source(operation: Operation, name: str) -> str:
    source: str | None = operation.get("from")
    if source is None:
        raise does_not_apply(f"{name} operation failed to decode from: missing value")
    return source


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike in Python, true is not 1 and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


_OPERATIONS: dict[str | None, Callable[[Any, str, Operation, _Effort], None]] = {
    "add": _add,
    "copy": _copy,
    "move": _move,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
}


def merge_patch(obj: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The object with the patch merged in: null removes, objects merge, everything else replaces.

    Copies only objects on the path to a change. Raises PatchError."""
    if patch is None:
        raise PatchError("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _undecodable(patch, "Go value of type map[string]interface {}")
    return _merged(obj, patch)


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            current = result.get(key)
            result[key] = _merged(current if isinstance(current, dict) else {}, value)
        else:
            result[key] = value
    return result
