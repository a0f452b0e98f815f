"""Lists and maps of the kinds of resource.k8s.io: how many items they may have, and which must differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, too_many
from podlife.api.names import check_label_key
from podlife.apiserver.strategies.field_checks import check_at, unique

T = TypeVar("T")

_SHORTEST_EXCERPT = 16
_MOST_BINDING_CONDITIONS = 4


def validate_list(
    items: Sequence[T],
    path: str,
    check: Callable[[T, str], Iterable[FieldError]],
    *,
    most: int | None = None,
    key: Callable[[T], Hashable] | None = None,
) -> FieldErrors:
    """Too many items are not looked at. With a `key`, no two items may have the same."""
    if most is not None and len(items) > most:
        yield too_many(path, len(items), most)
        return
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
    if key is not None:
        yield from validate_unique(list(map(key, items)), path)


def validate_unique(
    keys: Sequence[T], path: str, *, show: Callable[[T], object] = lambda key: key
) -> FieldErrors:
    seen: set[T] = set()
    for index, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{index}]", show(key))
        seen.add(key)


def validate_map(
    items: Mapping[str, Any],
    path: str,
    check_key: Callable[[str, str], Iterable[FieldError]],
    *,
    check: Callable[[Any, str], Iterable[FieldError]] | None = None,
    most: int | None = None,
    longest_key: int,
) -> FieldErrors:
    """Errors in keys are reported at the map, those in values at the key, which is shortened if it is long."""
    if most is not None and len(items) > most:
        yield too_many(path, len(items), most)
        return
    for key, item in items.items():
        yield from check_key(key, path)
        if check is not None:
            yield from check(item, f"{path}[{_shortened(key, longest_key)}]")


def _shortened(text: str, longest: int) -> str:
    longest = max(longest, _SHORTEST_EXCERPT)
    if len(text) <= longest:
        return text
    left = longest - 3
    return f"{text[: (left + 1) // 2]}...{text[len(text) - left // 2 :]}"


def validate_binding_conditions(holder: Object, path: str) -> FieldErrors:
    """What must be true of a device, or must not, before pods are bound: both or none."""
    fields = ("bindingConditions", "bindingFailureConditions")
    wanted, failures = (holder.get(field) or [] for field in fields)
    for field, given in zip(fields, (wanted, failures), strict=True):
        yield from validate_list(given, f"{path}.{field}", label_key, most=_MOST_BINDING_CONDITIONS)
    yield from validate_unique(wanted, f"{path}.{fields[0]}")
    both, seen = set(wanted), set[str]()
    for index, condition in enumerate(failures):
        at = f"{path}.{fields[1]}[{index}]"
        yield from unique(at, condition, seen)
        if condition in both:
            yield bad_value(at, condition, f"{fields[1]} must not overlap with {fields[0]}")
    for missing, other in (fields, fields[::-1]):
        if not holder.get(missing) and holder.get(other):
            yield bad_value(f"{path}.{missing}", None, f"{missing} are required to use {other}")


def label_key(key: str, path: str) -> list[FieldError]:
    return check_at(path, key, check_label_key)
