"""What a container that ended has to say."""

from __future__ import annotations

import pytest

from podlife.kubelet.status.container_statuses import is_log_needed, terminated_message
from tests.conformance.kubelet.kit import container, instance

FALLBACK = container(terminationMessagePolicy="FallbackToLogsOnError")


@pytest.mark.parametrize(
    ("code", "written", "expected"), [(1, "", True), (0, "", False), (1, "said", False), (0, "said", False)]
)
def test_the_log_speaks_for_one_that_failed_and_wrote_nothing(
    code: int, written: str, expected: bool
) -> None:
    known = instance("a", "exited", code, termination_message=written)
    assert is_log_needed(FALLBACK, known) is expected
    assert not is_log_needed(container(), known)
    assert terminated_message(FALLBACK, known, "the log") == ("the log" if expected else written)


def test_what_the_runtime_says_comes_first() -> None:
    known = instance("a", "exited", 1, message="OOM", termination_message="said")
    assert terminated_message(container(), known) == "OOM: said"
    assert terminated_message(container(), instance("a", "exited", 1, message="OOM")) == "OOM"


def test_the_end_of_what_is_too_long_is_kept() -> None:
    known = instance("a", "exited", 1, termination_message="x" * 5000 + "end")
    said = terminated_message(container(), known)
    assert (len(said), said[-3:]) == (4096, "end")
    lines = "".join(f"line {number}\n" for number in range(200))
    log = terminated_message(FALLBACK, instance("a", "exited", 1), lines)
    assert log.splitlines() == [f"line {number}" for number in range(120, 200)]
    assert len(terminated_message(FALLBACK, instance("a", "exited", 1), "y" * 9000)) == 2048
