"""Log options, parsed from the query of a request. Invalid ones are rejected in upstream's words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from podlife.api.integers import parse_int64
from podlife.kubelet.server.request import HttpError
from podlife.wire import Query

from .cri_format import LogOptions, nanoseconds_of

_STREAMS = ("All", "Stdout", "Stderr")


def log_options(query: Query, now: datetime) -> LogOptions:
    flags = {name: _flag(query, name) for name in ("follow", "previous", "timestamps")}
    tail = query.get("tail")
    numbers: Mapping[str, int | None] = {
        "tailLines": None if tail == "all" else _number(tail or query.get("tailLines")),
        "limitBytes": _number(query.get("limitBytes")),
        "sinceSeconds": _number(query.get("sinceSeconds")),
    }
    stream = query.get("stream") or "All"
    since = _since(query.get("sinceTime"), numbers["sinceSeconds"], now)
    if not _is_sensible(numbers) or stream not in _STREAMS:
        raise HttpError(422, '{"message": "Invalid request."}')
    return LogOptions(
        **flags,
        tail_lines=numbers["tailLines"],
        limit_bytes=numbers["limitBytes"],
        since_nanoseconds=since,
        stream=stream,
    )


def _is_sensible(numbers: Mapping[str, int | None]) -> bool:
    tail, limit, seconds = numbers["tailLines"], numbers["limitBytes"], numbers["sinceSeconds"]
    return (tail is None or tail >= 0) and (limit is None or limit > 0) and (seconds is None or seconds > 0)


def _since(time: str, seconds: int | None, now: datetime) -> int | None:
    if time:
        moment = nanoseconds_of(time)
        if moment is None:
            raise _unreadable()
        if seconds is not None:
            raise HttpError(422, '{"message": "Invalid request."}')
        return moment
    if seconds is None:
        return None
    return (int(now.timestamp()) - seconds) * 1_000_000_000 + now.microsecond * 1000


def _flag(query: Query, name: str) -> bool:
    return name in query and query.get(name).lower() not in ("false", "0")


def _number(text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_int64(text)
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> HttpError:
    return HttpError(400, '{"message": "Unable to decode query."}')
