"""Decodes response bodies: into plain dictionaries, or into a view of the caller's.

A view is a `msgspec.Struct` that declares only the fields its reader needs and is decoded directly from the bytes.
Decoders are created once per view.

kube-apiserver sends JSON that strict decoders reject: where the API allows arbitrary JSON (ControllerRevisions), it
passes on what users wrote: unpaired surrogates, invalid UTF-8, ten thousand levels of nesting. One such object must not
make a whole list unreadable. Invalid characters become U+FFFD, as in Go. A value that is nested too deeply becomes a
number that no type can hold: a view that needs the value is refused, all others decode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from podlife.errors import PodlifeError

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from podlife.api.codec import Object

    # Without a view the result is a dictionary: this default avoids an overload of each verb.
    T = TypeVarWithDefault("T", default=Object)
else:
    T = TypeVar("T")

V = TypeVar("V")

_MOST_WHY = 200
_MOST_LEVELS = 200
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_UNREADABLE = b"1e999"
# Matches any escape, so that an escaped backslash does not start one; the group is an unpaired surrogate.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_NO_LETTER = b"\\ufffd"


class BadAnswerError(PodlifeError):
    """The response is not JSON, or does not fit the view.

    If a single object does not fit, `namespace`, `name` and `resource_version` identify it, and `is_deleted` tells
    whether the event was its deletion."""

    def __init__(
        self,
        message: str,
        *,
        resource_version: str = "",
        namespace: str = "",
        name: str = "",
        is_deleted: bool = False,
    ) -> None:
        super().__init__(message)
        self.resource_version = resource_version
        self.namespace = namespace
        self.name = name
        self.is_deleted = is_deleted


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, or all of it. `remaining` is the number of objects left, if the server reports it."""

    items: list[T]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    # `continue` is a Python keyword.
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[V]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[V] | None = None


class EnvelopeMetadata(msgspec.Struct, rename="camel"):
    """Identifies an object. A name of another type is an error of the object, not of the envelope."""

    resource_version: str = ""
    name: object = ""
    namespace: object = ""
    annotations: dict[str, str] | None = None


class Envelope(msgspec.Struct):
    """Fields of any object, read before its view or instead of it."""

    metadata: EnvelopeMetadata


envelope_decoder = msgspec.json.Decoder(Envelope)


def misfit(error: BadAnswerError, metadata: EnvelopeMetadata, *, is_deleted: bool = False) -> BadAnswerError:
    """The error of an object that does not fit its view, with the object's name."""
    return BadAnswerError(
        str(error),
        resource_version=metadata.resource_version,
        namespace=metadata.namespace if isinstance(metadata.namespace, str) else "",
        name=metadata.name if isinstance(metadata.name, str) else "",
        is_deleted=is_deleted,
    )


@lru_cache(maxsize=256)
def decoder_of(view: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(view)


def decode(data: bytes | msgspec.Raw, view: type[T] | None, what: str) -> T:
    """Decode an object. Raises BadAnswerError, which names `what` was requested."""
    decoded: T = _decode(data, dict[str, Any] if view is None else view, what)
    return decoded


def decode_page(
    data: bytes, view: type[T] | None, what: str, report: Callable[[BadAnswerError], None] | None = None
) -> Page[T]:
    """Decode a list. Objects that do not fit the view are omitted and passed to `report`; without it the error is
    raised, as for anything but a list."""
    item = dict[str, Any] if view is None else view
    try:
        page: _List[T] = _decode(data, _List[item], what)  # type: ignore[valid-type]
    except BadAnswerError:
        if report is None:
            raise
        page = _decode_each(data, view, what, report)
    return Page(
        items=page.items or [],
        resource_version=page.metadata.resource_version,
        continue_token=page.metadata.continue_token,
        remaining=page.metadata.remaining_item_count,
    )


def _decode_each(
    data: bytes, view: type[T] | None, what: str, report: Callable[[BadAnswerError], None]
) -> _List[T]:
    raw: _List[msgspec.Raw] = _decode(data, _List[msgspec.Raw], what)
    items: list[T] = []
    for item in raw.items or ():
        try:
            items.append(decode(item, view, what))
        except BadAnswerError as error:
            report(misfit(error, _decode(item, Envelope, what).metadata))
    return _List(raw.metadata, items)


def _decode(data: bytes | msgspec.Raw, type_: Any, what: str) -> Any:
    decoder = decoder_of(type_)
    try:
        try:
            return decoder.decode(data)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decode_lenient(decoder, bytes(data))
    except RecursionError:
        raise BadAnswerError(f"the answer to {what} is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # The message contains the path, which may be two hundred levels deep.
        raise BadAnswerError(f"the answer to {what} cannot be read: {str(error)[:_MOST_WHY]}") from None


def decode_lenient(decoder: msgspec.json.Decoder[V], data: bytes) -> V:
    """Decode what the strict decoder rejected. Raises as a decoder if it is still invalid."""
    data = _with_letters(data)
    try:
        return decoder.decode(data)
    except RecursionError:
        return decoder.decode(_shallow(data))


def _with_letters(data: bytes) -> bytes:
    """The same JSON with invalid characters replaced."""
    data = data.decode(errors="replace").encode()
    return _ESCAPE.sub(lambda escape: _NO_LETTER if escape[1] else escape[0], data)


def _shallow(data: bytes) -> bytes:
    """The same JSON without values that are nested too deeply. Invalid JSON stays invalid."""
    kept: list[bytes] = []
    level = start = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            level += 1
            if level == _MOST_LEVELS + 1:
                kept += (data[start : token.start()], _UNREADABLE)
                start = len(data)
        elif first in b"]}":
            if level == _MOST_LEVELS + 1:
                start = token.end()
            level -= 1
    kept.append(data[start:])
    return b"".join(kept)
