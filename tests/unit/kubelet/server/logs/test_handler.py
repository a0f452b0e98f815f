"""What a request asks for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podlife.kubelet.server.logs.cri_format import LogOptions
from podlife.kubelet.server.logs.handler import log_options
from podlife.kubelet.server.request import HttpError
from podlife.wire import Query

NOW = datetime(2030, 1, 1, 0, 0, 10, 500_000, tzinfo=UTC)
SECOND = 1_000_000_000
AT = int(NOW.timestamp())


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", LogOptions()),
        ("follow=true&previous=1&timestamps=", LogOptions(follow=True, previous=True, timestamps=True)),
        ("follow=false&previous=0", LogOptions()),
        ("tailLines=0&limitBytes=1", LogOptions(tail_lines=0, limit_bytes=1)),
        ("tailLines=5&tail=7", LogOptions(tail_lines=7)),
        ("tailLines=5&tail=all", LogOptions()),
        ("stream=Stderr", LogOptions(stream="Stderr")),
        ("sinceSeconds=10", LogOptions(since_nanoseconds=(AT - 10) * SECOND + SECOND // 2)),
        ("sinceTime=2030-01-01T00:00:10Z", LogOptions(since_nanoseconds=AT * SECOND)),
    ],
)
def test_options_of_a_log(query: str, options: LogOptions) -> None:
    assert log_options(Query(query), NOW) == options


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tailLines=x", 400),
        ("tailLines=1_0", 400),
        ("tailLines=-%2B5", 400),
        ("limitBytes=%201", 400),
        ("sinceSeconds=%D9%A3", 400),
        ("tailLines=" + "9" * 5000, 400),
        ("limitBytes=²", 400),
        ("sinceTime=yesterday", 400),
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("sinceSeconds=0", 422),
        ("sinceSeconds=1&sinceTime=2030-01-01T00:00:00Z", 422),
        ("stream=Stdin", 422),
    ],
)
def test_options_of_a_log_that_make_no_sense(query: str, code: int) -> None:
    with pytest.raises(HttpError) as refused:
        log_options(Query(query), NOW)
    assert refused.value.code == code
