"""What may be sent again."""

from __future__ import annotations

import pytest

from podlife.client.retry import is_trouble, retry_seconds
from podlife.client.transport import DeadlineError, NotSentError
from podlife.errors import (
    ApiError,
    ConflictError,
    NotFoundError,
    PodlifeError,
    TooManyRequestsError,
    UnreachableError,
)

BUDGET = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}], "retryAfterSeconds": 10}
REFUSED = {"retryAfterSeconds": 3}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PATCH", "PUT"])
@pytest.mark.parametrize("code", [429, 503])
def test_a_refusal_with_a_time_to_come_back_is_repeated_then_whatever_the_method(
    method: str, code: int
) -> None:
    assert retry_seconds(method, ApiError("busy", code=code, details=REFUSED), 9) == 3


@pytest.mark.parametrize(
    "error",
    [
        ApiError("broken", code=500),
        ApiError("slow", code=504, details=REFUSED),
        ApiError("busy", code=503),
        TooManyRequestsError("busy"),
        UnreachableError("cut off"),
    ],
)
def test_what_may_have_been_executed_is_repeated_for_reads_alone(error: PodlifeError) -> None:
    assert retry_seconds("POST", error, 1) is None
    assert retry_seconds("DELETE", error, 1) is None
    assert 0.05 <= (retry_seconds("GET", error, 1) or 0) <= 0.1


def test_a_request_that_never_left_is_repeated_whatever_the_method() -> None:
    assert retry_seconds("POST", NotSentError("refused"), 1) is not None
    assert retry_seconds("POST", NotSentError("not trusted", is_lasting=True), 1) is None


def test_there_are_at_most_four_attempts_and_they_wait_longer_each_time() -> None:
    delays = [retry_seconds("GET", UnreachableError("cut"), failures) for failures in (1, 2, 3, 4)]
    assert delays[3] is None
    assert [0.05 <= (delays[0] or 0) <= 0.1, 0.1 <= (delays[1] or 0) <= 0.2, 0.2 <= (delays[2] or 0) <= 0.4]


@pytest.mark.parametrize("error", [NotFoundError("gone"), ConflictError("stale"), DeadlineError("late")])
def test_an_answer_and_a_spent_deadline_are_final(error: PodlifeError) -> None:
    assert retry_seconds("GET", error, 1) is None


def test_a_disruption_budget_that_says_no_is_an_answer_and_no_trouble() -> None:
    error = TooManyRequestsError("Cannot evict pod", details=BUDGET)
    assert retry_seconds("POST", error, 1) is None
    assert not is_trouble(error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TooManyRequestsError("busy"), True),
        (ApiError("broken", code=500), True),
        (ApiError("not implemented", code=501), False),
        (ApiError("disk full", code=507), False),
        (NotFoundError("gone"), False),
        (DeadlineError("late"), True),
    ],
)
def test_trouble_is_overload_and_silence(error: PodlifeError, expected: bool) -> None:
    assert is_trouble(error) is expected


def test_a_server_that_says_to_come_back_at_once_is_given_a_moment() -> None:
    error = ApiError("busy", code=429, details={"retryAfterSeconds": 0})
    delay = retry_seconds("POST", error, 1)
    assert delay is not None
    assert delay > 0
