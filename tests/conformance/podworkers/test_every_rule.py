"""Every rule of the pod workers and of the housekeeping around them has a test in this package that names it."""

from __future__ import annotations

from tests.conformance.every_rule import Suite


def test_every_rule_has_its_test_and_every_name_is_a_rules() -> None:
    Suite(__file__, __package__, r"(?:PW|HC)-\d\d\d?").check()
