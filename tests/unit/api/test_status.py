"""A Status may come from anything that stands between us and the server."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.status import from_status
from podlife.errors import ApiError, TooManyRequestsError


@pytest.mark.parametrize("nonsense", [5, "x", [], [1], {}, {"a": 1}, None, True, 1.5])
@pytest.mark.parametrize("field", ["code", "reason", "message", "details", "kind"])
def test_a_status_with_nonsense_in_it_is_still_an_error_that_can_be_shown(field: str, nonsense: Any) -> None:
    error = from_status({"kind": "Status", field: nonsense}, 404)
    assert isinstance(error, ApiError)
    assert isinstance(error.code, int)
    assert isinstance(str(error), str)
    assert error.retry_after_seconds is None


@pytest.mark.parametrize(("asked", "obeyed"), [(7, 7), (10**30, 300), (-5, 0), ("7", None), (1.5, None)])
def test_a_wait_that_a_server_asks_for_is_kept_within_reason(asked: Any, obeyed: int | None) -> None:
    error = from_status({"kind": "Status", "details": {"retryAfterSeconds": asked}}, 429)
    assert isinstance(error, TooManyRequestsError)
    assert error.retry_after_seconds == obeyed
