"""What the demos tell, without telling it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from podlife.demo.cluster import DemoTimes
from podlife.demo.narrator import DemoStep
from podlife.demo.scenarios import graceful_delete as demo_graceful_delete
from podlife.demo.scenarios import node_failure as demo_node_failure
from podlife.demo.scenarios import orphans as demo_orphans
from tests.kit.behaviour_catalogue import rules

ROOT = Path(__file__).parents[3]
STORIES: dict[str, tuple[DemoStep[Any], ...]] = {
    "node-failure": demo_node_failure.STEPS,
    "graceful-delete": demo_graceful_delete.STEPS,
    "orphans": demo_orphans.STEPS,
}


@pytest.mark.parametrize("name", STORIES)
def test_every_rule_that_is_named_is_one_that_has_its_test(name: str) -> None:
    texts = " ".join(f"{step.what} {step.who} {step.rule}" for step in STORIES[name])
    named = set(re.findall(r"\b[A-Z]{2}-\d+\b", texts))
    assert named
    assert named <= set(rules())


@pytest.mark.parametrize("name", STORIES)
def test_the_page_has_every_step_in_its_order(name: str) -> None:
    page = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    section = page.split(f"## {name}\n")[1].split("\n## ")[0]
    titles = re.findall(r"^\d+\. \*\*(.*?)\*\*", section, re.MULTILINE)
    assert titles == [step.title for step in STORIES[name]]


def test_the_page_has_the_times_of_the_demos() -> None:
    page = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    times = DemoTimes()
    assert times.renew_seconds == 1
    assert f"(`--node-monitor-grace-period`) | {times.monitor_grace_seconds} s |" in page
    assert f"| {times.toleration_seconds} s | 300 s |" in page
    assert f"(`--pod-gc-quarantine`) | {times.quarantine_seconds} s |" in page
