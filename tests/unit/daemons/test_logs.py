"""The log: JSON for machines, words for people, and the records of every library in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from podlife.daemons.logs import set_up_logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("podlife")
    before = root.handlers, root.level, ours.level
    yield
    root.handlers = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    structlog.reset_defaults()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_record_is_one_json_object_a_line() -> None:
    stream = io.StringIO()
    set_up_logs(0, stream)
    structlog.get_logger("podlife.podgc").info("deleted a pod", namespace="ns", reason="orphaned")
    record = json.loads(stream.getvalue())
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "message": "deleted a pod",
        "level": "info",
        "logger": "podlife.podgc",
        "namespace": "ns",
        "reason": "orphaned",
    }


def test_the_standard_librarys_loggers_take_the_same_way() -> None:
    stream = io.StringIO()
    set_up_logs(0, stream)
    logging.getLogger("podlife.client").warning("%s is slow", "it", extra={"seconds": 3})
    logging.getLogger("aiohttp").warning("odd")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["message"], first["seconds"], first["logger"]) == ("it is slow", 3, "podlife.client")
    assert second["logger"] == "aiohttp"


def test_an_exception_is_in_its_record_and_not_behind_it() -> None:
    stream = io.StringIO()
    set_up_logs(0, stream)
    try:
        raise KeyError("the thing")
    except KeyError:
        logging.getLogger("podlife").exception("it failed")
    assert "KeyError" in json.loads(stream.getvalue())["exception"]


def test_on_a_terminal_it_is_for_people() -> None:
    stream = Terminal()
    set_up_logs(0, stream)
    structlog.get_logger("podlife.podgc").info("deleted a pod", reason="orphaned", uid="a-b-c")
    assert "deleted a pod" in stream.getvalue()
    assert "orphaned" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
    assert "a-b-c" not in stream.getvalue()
    assert "podlife.podgc" not in stream.getvalue()


def test_on_a_terminal_details_are_shown_on_request() -> None:
    stream = Terminal()
    set_up_logs(1, stream)
    structlog.get_logger("podlife.podgc").info("deleted a pod", uid="a-b-c")
    assert "a-b-c" in stream.getvalue()
    assert "podlife.podgc" in stream.getvalue()


def test_what_is_told_grows_with_the_level() -> None:
    for verbosity, told in [(0, []), (1, ["ours"]), (4, ["ours", "theirs"])]:
        stream = io.StringIO()
        set_up_logs(verbosity, stream)
        logging.getLogger("podlife.x").debug("ours")
        logging.getLogger("other").debug("theirs")
        assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == told
