"""Every rule of node health, taint eviction, default tolerations and taint writing has a test that names it."""

from __future__ import annotations

from tests.conformance.every_rule import Suite


def test_every_rule_has_its_test_and_every_name_is_a_rules() -> None:
    Suite(__file__, __package__, r"(?:NL|RQ|TE|DT|TN)-\d\d[a-z]?").check()
