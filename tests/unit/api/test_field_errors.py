"""The 422 of many mistakes: bounded, whatever the mistakes quote."""

import json

from podlife.api import status
from podlife.api.field_errors import bad_value, duplicate, invalid, required
from podlife.errors import ApiError


def test_few_errors_are_all_told() -> None:
    error = invalid("Pod", "", "web", [required("a"), duplicate("b", "x")])
    assert error.message == 'Pod "web" is invalid: [a: Required value, b: Duplicate value: "x"]'
    assert [cause["field"] for cause in error.details["causes"]] == ["a", "b"]


def test_of_many_errors_the_first_are_told_and_the_others_counted() -> None:
    error = invalid("Pod", "", "web", [required(f"a[{index}]") for index in range(2_500)])
    assert len(error.details["causes"]) == 1_000
    assert error.message.endswith("a[999]: Required value, and 1500 more errors]")


def test_a_list_that_every_error_quotes_makes_no_endless_answer() -> None:
    owners = [{"kind": "Owner", "name": f"owner-{number}"} for number in range(5_000)]
    error = invalid("Pod", "", "web", [bad_value("owners", owners, "only one") for _ in owners])
    assert len(json.dumps(status.failure(error))) < 1 << 20
    assert " more errors]" in error.message


def test_a_message_and_a_name_of_megabytes_are_cut() -> None:
    error = ApiError(f"no such thing: {'x' * 3_000_000}", details={"name": "x" * 3_000_000})
    assert len(json.dumps(status.failure(error))) < 1 << 20
