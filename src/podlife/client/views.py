"""From the bytes of an answer to what the caller asked for: a plain dictionary, or a view of its own.

A view is a `msgspec.Struct` that declares only the fields its reader needs; it is decoded straight from the
bytes. Decoders are made once per view.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from podlife.errors import PodlifeError

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from podlife.api.codec import Object

    # No view means a dictionary: with this default no verb needs an overload for it.
    T = TypeVarWithDefault("T", default=Object)
else:
    T = TypeVar("T")

__all__ = ["BadAnswerError", "Page", "T", "decode", "decode_page"]

V = TypeVar("V")


class BadAnswerError(PodlifeError):
    """The server's answer is not JSON, or does not fit the view it was to be read into.

    `resource_version` is that of the object which did not fit, where it is known."""

    def __init__(self, message: str, *, resource_version: str = "") -> None:
        super().__init__(message)
        self.resource_version = resource_version


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, or all of it. `remaining` is how many are left, where the server says so."""

    items: list[T]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    # `continue` is a word of Python's own.
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, Generic[V]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[V] | None = None


@lru_cache(maxsize=256)
def decoder_of(view: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(view)


def decode(data: bytes | msgspec.Raw, view: type[T] | None, what: str) -> T:
    """The object in `data`; raises BadAnswerError, which says `what` it was the answer to."""
    decoded: T = _decode(data, dict[str, Any] if view is None else view, what)
    return decoded


def decode_page(data: bytes, view: type[T] | None, what: str) -> Page[T]:
    page: _List[T] = _decode(data, _List[dict[str, Any] if view is None else view], what)  # type: ignore[misc]
    return Page(
        items=page.items or [],
        resource_version=page.metadata.resource_version,
        continue_token=page.metadata.continue_token,
        remaining=page.metadata.remaining_item_count,
    )


def _decode(data: bytes | msgspec.Raw, type_: Any, what: str) -> Any:
    try:
        return decoder_of(type_).decode(data)
    except RecursionError:
        raise BadAnswerError(f"the answer to {what} is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswerError(f"the answer to {what} cannot be read: {error}") from None
