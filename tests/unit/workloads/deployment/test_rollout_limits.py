from __future__ import annotations

import pytest

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.views import max_surge, max_unavailable
from podlife.workloads.views import scaled
from tests.unit.workloads.deployment.objects import deployment


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, 2, 3, (2, 3)),
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (2, "0%", "1%", (0, 1)),
        (1, 0, "1%", (0, 1)),
        (2, "1%", "0%", (1, 0)),
        (3, 0, "100%", (0, 3)),
        # No more may be missing than there are.
        (2, 0, 5, (0, 2)),
        (0, "25%", "25%", (0, 0)),
        (0, 2, 2, (2, 0)),
        (3, "150%", 0, (5, 0)),
        # kube-apiserver sets no bound to a surge; the replicas with it must be a number that it takes.
        (10, 2**31 - 1, 0, (2**31 - 11, 0)),
        (10, "99999999999%", 0, (2**31 - 11, 0)),
    ],
)
def test_percentages_are_of_the_replicas_and_never_both_nothing(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    made = deployment(replicas, surge=surge, unavailable=unavailable)
    assert (max_surge(made), max_unavailable(made)) == expected


def test_a_deployment_that_recreates_has_no_bounds() -> None:
    made = deployment(4, surge=2, unavailable=2, strategy="Recreate")
    assert (max_surge(made), max_unavailable(made)) == (0, 0)


@pytest.mark.parametrize("value", ["", "25", "%", "-5%", "2.5%", "٣%", "25% ", "9" * 5000 + "%"])
def test_what_is_no_percentage_is_refused_in_one_line(value: str) -> None:
    with pytest.raises(InvalidInputError, match="neither a number nor a percentage"):
        scaled(value, 10, round_up=True)
