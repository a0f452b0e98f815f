"""Query parameters of a list or a watch, and continue tokens."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import msgspec

from podlife.api.field_errors import FieldError, forbidden, invalid, not_supported
from podlife.api.integers import parse_int64
from podlife.apiserver.registry.request_body import bad_request
from podlife.wire import Query


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The checked parameters that list and watch share."""

    limit: int
    continue_: str
    revision: int | None
    match: str
    send_initial_events: bool | None
    bookmarks: bool
    timeout_seconds: int | None

    @classmethod
    def from_query(cls, query: Query, *, watch: bool) -> ListOptions:
        options = cls(
            limit=integer_parameter(query, "limit") or 0,
            continue_=query.get("continue"),
            revision=parse_revision(
                query.get("resourceVersion"), prefix="" if watch else "invalid resource version: "
            ),
            match=query.get("resourceVersionMatch"),
            send_initial_events=boolean_parameter(query, "sendInitialEvents"),
            bookmarks=bool(boolean_parameter(query, "allowWatchBookmarks")),
            timeout_seconds=integer_parameter(query, "timeoutSeconds"),
        )
        errors = options._watch_errors() if watch else options._list_errors()
        if errors:
            raise invalid("ListOptions", "meta.k8s.io", "", errors)
        return options

    def _list_errors(self) -> list[FieldError]:
        errors = []
        match = "resourceVersionMatch"
        if self.match:
            if self.revision is None:
                errors.append(forbidden(match, f"{match} is forbidden unless resourceVersion is provided"))
            if self.continue_:
                errors.append(forbidden(match, f"{match} is forbidden when continue is provided"))
            if self.match not in ("Exact", "NotOlderThan"):
                errors.append(not_supported(match, self.match, ["Exact", "NotOlderThan", ""]))
            if self.match == "Exact" and self.revision == 0:
                errors.append(forbidden(match, f'{match} "exact" is forbidden for resourceVersion "0"'))
        if self.send_initial_events is not None:
            errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return errors

    def _watch_errors(self) -> list[FieldError]:
        errors = []
        match = "resourceVersionMatch"
        if self.send_initial_events is not None and self.match != "NotOlderThan":
            errors.append(forbidden(match, f"sendInitialEvents requires setting {match} to NotOlderThan"))
        if self.match:
            if self.send_initial_events is None:
                errors.append(
                    forbidden(match, f"{match} is forbidden for watch unless sendInitialEvents is provided")
                )
            if self.match != "NotOlderThan":
                errors.append(not_supported(match, self.match, ["NotOlderThan"]))
            if self.continue_:
                errors.append(forbidden(match, f"{match} is forbidden when continue is provided"))
        return errors


def parse_revision(text: str, *, prefix: str = "") -> int | None:
    """Parse a resourceVersion parameter; None if absent."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19:
        raise bad_request(
            f'{prefix}resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def integer_parameter(query: Query, key: str) -> int | None:
    if not (text := query.get(key)):
        return None
    try:
        return parse_int64(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


def boolean_parameter(query: Query, key: str) -> bool | None:
    """As upstream reads it: everything but false and 0 is true."""
    text = query.get(key)
    return None if not text and key not in query else text.lower() not in ("false", "0")


LATEST = -1
"""Revision of a continue token whose list goes on with what there is now: its own revision has been compacted."""


def encode_continue(revision: int, start: str) -> str:
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(token).decode().rstrip("=")


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


_decode_token = msgspec.json.Decoder(_Token).decode


def decode_continue(text: str) -> tuple[int, str]:
    try:
        token = _decode_token(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise bad_request(f"invalid continue token: continue key is not valid: {text[:64]!r}") from None
    if (token.rv <= 0 and token.rv != LATEST) or not token.start:
        raise bad_request(f"invalid continue token: continue key is not valid: {text[:64]!r}")
    return token.rv, token.start
