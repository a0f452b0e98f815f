"""Which check fails and why."""

from __future__ import annotations

import pytest

from podlife.controller import Health


def well() -> str:
    return ""


def test_without_checks_all_is_well() -> None:
    assert Health().report("readyz", liveness=False) == (True, "readyz check passed\n")


def test_a_check_that_fails_says_which_and_why_and_the_others_that_they_are_well() -> None:
    health = Health()
    health.add("leader", well)
    health.add("informer", lambda: "pods have not synced")
    is_well, text = health.report("readyz", liveness=False)
    assert not is_well
    assert text == "[+]leader ok\n[-]informer failed: pods have not synced\nreadyz check failed\n"
    assert health.failures(liveness=False) == {"informer": "pods have not synced"}


def test_what_makes_it_not_ready_does_not_make_it_dead() -> None:
    health = Health()
    health.add("informer", lambda: "pods have not synced")
    assert health.failures(liveness=True) == {}
    health.add("loop", lambda: "stuck", liveness=True)
    assert health.failures(liveness=True) == {"loop": "stuck"}
    assert list(health.failures(liveness=False)) == ["informer", "loop"]


def test_a_check_that_breaks_is_a_failure() -> None:
    health = Health()
    health.add("informer", lambda: str(1 // 0))
    assert "ZeroDivisionError" in health.failures(liveness=False)["informer"]


def test_a_name_is_used_once() -> None:
    health = Health()
    health.add("informer", well)
    with pytest.raises(ValueError, match="'informer'"):
        health.add("informer", well)
