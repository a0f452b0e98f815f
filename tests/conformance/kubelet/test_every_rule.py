"""Every rule in `rules.txt` is carried by a test of this package that names it, and those are all rules there are."""

from __future__ import annotations

from tests.conformance.every_rule import Suite

SUITE = Suite(__file__, __package__, r"(?:KL|KC|KO|ST|SM|PL|RS|RB|PH|PHR|CS|PR)-\d\d[a-z]?")
ALL_RULES = 258


def test_every_rule_has_a_test_that_names_it() -> None:
    SUITE.check()
    assert len(SUITE.rules) == ALL_RULES
