"""The list of conformance specs that do not pass, beside the results of a run."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.kit.real_parts import ROOT
from tests.real.conformance.specs import CHAPTERS, Chapter, complaints, known_failures, results_of, short

API, APPS = CHAPTERS["api"], CHAPTERS["apps"]
PARITY = f"""before
{API.begin}
| why | specs |
|---|---|
| `--runtime sim`: pods do not answer | `Webhook should deny` |
| not served | `Aggregator should work, too`, `Quota should count` |
{API.end}
| why | `another table` |
"""
EVERYTHING = API.focus()


def spec(name: str, state: str = "passed", message: str = "", kind: str = "It") -> dict[str, Any]:
    failure = {"Failure": {"Message": message}} if message else {}
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": ["[sig-api-machinery]"],
        "LeafNodeText": f"{name} [Conformance]",
        "State": state,
        "RunTime": 2_000_000_000,
        **failure,
    }


def said(*specs: dict[str, Any], focus: str = EVERYTHING) -> list[str]:
    return complaints(results_of([{"SpecReports": list(specs)}]), known_failures(PARITY, API), API, focus)


def test_results_that_are_as_listed_are_fine() -> None:
    assert not said(
        spec("Watchers should see"),
        spec("Aggregator should work, too", "failed", "no"),
        spec("Quota should count", "timedout"),
    )


def test_a_failure_that_is_not_listed_is_told_with_its_cause() -> None:
    [only] = said(spec("Watchers should see", "failed", "saw\n  nothing"), focus="Watchers")
    assert only.startswith("Watchers should see does not pass")
    assert only.endswith("saw nothing")


def test_a_listed_spec_that_passes_or_does_not_run_is_told() -> None:
    passes, absent = said(spec("Aggregator should work, too"))
    assert passes == "Aggregator should work, too is listed in docs/parity.md, and passes"
    assert absent == "Quota should count is listed in docs/parity.md, and did not run"


def test_specs_out_of_focus_are_not_missed() -> None:
    assert not said(spec("Quota should count", "failed", "no"), focus=API.focus("Quota"))


def test_a_suite_that_cannot_begin_is_a_failure() -> None:
    [result] = results_of(
        [
            {
                "SpecReports": [
                    spec("", "failed", "no nodes", "SynchronizedBeforeSuite"),
                    spec("x", "skipped"),
                    spec("", "passed", kind="ReportAfterSuite"),
                ]
            }
        ]
    )
    assert (result.name, result.passed, result.cause) == ("SynchronizedBeforeSuite", False, "no nodes")


def test_a_row_about_another_runtime_does_not_count() -> None:
    assert "Webhook should deny" not in known_failures(PARITY, API)
    assert "Webhook should deny" in known_failures(PARITY, API, "sim")


def test_a_chapter_has_the_specs_of_its_groups_and_no_others() -> None:
    focus = APPS.focus()
    for name in ("[sig-cli] Kubectl logs", "[sig-api-machinery] ResourceQuota should count"):
        assert re.search(focus, f"{name} [Conformance]"), name
    for name in ("[sig-api-machinery] Watchers should see [Conformance]", "[sig-apps] Job should run"):
        assert not re.search(focus, name), name
    assert APPS.has("Job should run", APPS.focus("Job"))
    assert not APPS.has("Job should run", APPS.focus("CronJob"))
    assert not known_failures(PARITY, APPS)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=lambda each: each.name)
def test_the_list_in_the_documentation_can_be_read_and_has_reasons(chapter: Chapter) -> None:
    known = known_failures((ROOT / "docs" / "parity.md").read_text(), chapter)
    assert all(reason and name == short(name) for name, reason in known.items())
