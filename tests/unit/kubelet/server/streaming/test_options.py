"""Exec options of a request."""

from __future__ import annotations

import pytest

from podlife.kubelet.server.request import HttpError
from podlife.kubelet.server.streaming.options import ExecOptions, exec_options
from podlife.wire import Query


def test_a_terminal_has_no_stream_of_errors() -> None:
    asked = exec_options(Query("command=a&command=b+c&input=1&output=1&error=1&tty=1"))
    assert asked == ExecOptions(("a", "b c"), stdin=True, stdout=True, stderr=False, tty=True)


@pytest.mark.parametrize("query", ["command=a", "command=a&error=1&tty=1", "output=1", "output=1&command="])
def test_options_of_a_command_that_make_no_sense(query: str) -> None:
    with pytest.raises(HttpError, match="you must specify"):
        exec_options(Query(query))
