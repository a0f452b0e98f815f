"""Every rule of graceful deletion and eviction is carried by a test of this package that names it."""

from __future__ import annotations

from tests.conformance.every_rule import Suite


def test_every_rule_has_its_test_and_every_name_is_a_rules() -> None:
    Suite(__file__, __package__, r"(?:GD|EV)-\d\d[a-z]?").check()
