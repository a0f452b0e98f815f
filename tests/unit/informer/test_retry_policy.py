"""How long an informer is patient, and with what."""

from __future__ import annotations

import pytest

from podlife.client import BadAnswerError, NotSentError
from podlife.errors import (
    ApiError,
    ConfigError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    PodlifeError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from podlife.informer.retry_policy import RetryPolicy

REFUSED = [UnauthorizedError("who?"), ForbiddenError("no"), NotFoundError("what?"), ConfigError("no plugin")]
PASSING = [
    UnreachableError("reset"),
    NotSentError("refused"),
    TooManyRequestsError("busy"),
    ApiError("ill", code=503),
    ExpiredError("old"),
    BadAnswerError("rubbish"),
]
WRONG_ADDRESS = NotSentError("certificate", is_lasting=True)


@pytest.mark.parametrize("error", [*REFUSED, WRONG_ADDRESS])
def test_before_the_first_sync_what_will_not_change_is_believed_at_once(error: PodlifeError) -> None:
    assert RetryPolicy().is_fatal(error, 0)


@pytest.mark.parametrize("error", PASSING)
def test_what_may_pass_is_never_believed(error: PodlifeError) -> None:
    policy = RetryPolicy()
    assert not policy.is_fatal(error, 0)
    assert not policy.is_fatal(error, 1e6)
    policy.note_sync(1e6)
    assert not policy.is_fatal(error, 2e6)


@pytest.mark.parametrize("error", REFUSED)
def test_after_a_sync_a_refusal_is_believed_when_it_has_lasted_a_minute(error: PodlifeError) -> None:
    policy = RetryPolicy()
    policy.note_sync(0)
    assert not policy.is_fatal(error, 1000)
    assert not policy.is_fatal(error, 1059)
    assert policy.is_fatal(error, 1060)


@pytest.mark.parametrize("between", [UnreachableError("reset"), WRONG_ADDRESS])
def test_a_refusal_begins_anew_after_anything_else(between: PodlifeError) -> None:
    policy = RetryPolicy()
    policy.note_sync(0)
    assert not policy.is_fatal(REFUSED[0], 100)
    assert not policy.is_fatal(between, 150)
    assert not policy.is_fatal(REFUSED[0], 200)
    policy.note_sync(210)
    assert not policy.is_fatal(REFUSED[0], 259)


def test_after_a_sync_no_outage_ends_the_informer_not_even_one_that_looks_like_a_wrong_address() -> None:
    policy = RetryPolicy()
    policy.note_sync(0)
    assert not policy.is_fatal(WRONG_ADDRESS, 1)
    assert not policy.is_fatal(WRONG_ADDRESS, 1e6)


def test_each_failure_in_a_row_waits_longer_up_to_a_bound() -> None:
    policy, error = RetryPolicy(), UnreachableError("reset")
    delays = [policy.next_delay(error, now) for now in range(20)]
    assert 0 < delays[0] <= 0.1
    assert delays[-1] <= 10
    # Half of each is chance; four failures later it is longer for certain.
    assert all(later > earlier for earlier, later in zip(delays[:4], delays[4:8], strict=True))


def test_a_stream_that_lived_ends_the_row_and_one_that_did_not_does_not() -> None:
    policy, error = RetryPolicy(), UnreachableError("reset")
    for now in range(10):
        policy.note_sync(now)
        delay = policy.next_delay(error, now)
    assert delay > 1
    policy.note_sync(100)
    assert policy.next_delay(error, 111) <= 0.1
    # The outage that follows is a row of its own, however long it lasts.
    assert [policy.next_delay(error, 111 + 20 * step) for step in range(8)][-1] > 1


def test_the_time_that_the_server_asks_for_is_given() -> None:
    busy = TooManyRequestsError("busy", details={"retryAfterSeconds": 30})
    assert RetryPolicy().next_delay(busy, 0) == 30
