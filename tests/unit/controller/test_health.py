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


def test_what_makes_it_not_ready_does_not_make_it_dead() -> None:
    health = Health()
    health.add("informer", lambda: "pods have not synced")
    assert health.report("livez", liveness=True) == (True, "livez check passed\n")
    health.add("loop", lambda: "stuck", liveness=True)
    assert health.report("livez", liveness=True) == (False, "[-]loop failed: stuck\nlivez check failed\n")
    assert "[-]informer failed: " in health.report("readyz", liveness=False)[1]
    assert "[-]loop failed: " in health.report("readyz", liveness=False)[1]


def test_a_check_that_breaks_is_a_failure() -> None:
    health = Health()
    health.add("informer", lambda: str(1 // 0))
    is_well, text = health.report("readyz", liveness=False)
    assert not is_well
    assert "[-]informer failed: the check itself failed: ZeroDivisionError" in text


def test_a_name_is_used_once() -> None:
    health = Health()
    health.add("informer", well)
    with pytest.raises(ValueError, match="'informer'"):
        health.add("informer", well)
