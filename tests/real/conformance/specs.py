"""What a run of the suite says, and the list of specs that are known not to pass. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MARK = r"\[Conformance\]"
# What a spec says about its failure is long; a table shows the beginning.
_LONGEST_CAUSE = 160


@dataclass(frozen=True)
class Chapter:
    """The specs of `make conformance-NAME`: of each group all, or those whose names begin with a word."""

    name: str
    groups: Mapping[str, str]

    @property
    def begin(self) -> str:
        return f"<!-- conformance-{self.name}: begin -->"

    @property
    def end(self) -> str:
        return f"<!-- conformance-{self.name}: end -->"

    def focus(self, part: str = "") -> str:
        """ginkgo's expression for the chapter, or for the specs of it that match `part`."""
        groups = "|".join(rf"\[{group}\] {word}" for group, word in self.groups.items())
        return f"(?:{groups}).*{f'(?:{part}).*' if part else ''}{_MARK}"

    def has(self, name: str, focus: str) -> bool:
        """Whether a spec of this short name is in focus."""
        return any(re.search(focus, f"[{group}] {name} [Conformance]") for group in self.groups)


CHAPTERS = {
    each.name: each
    for each in (
        Chapter("api", {"sig-api-machinery": ""}),
        Chapter(
            "apps",
            {
                **dict.fromkeys(("sig-apps", "sig-cli", "sig-auth", "sig-scheduling"), ""),
                **dict.fromkeys(("sig-instrumentation", "sig-architecture"), ""),
                "sig-api-machinery": "ResourceQuota",
            },
        ),
    )
}


@dataclass(frozen=True)
class SpecResult:
    name: str
    passed: bool
    seconds: float
    cause: str = ""


def short(name: str) -> str:
    """The name without group and marks, which all of them have."""
    return re.sub(rf"^\[sig-[a-z-]+\] | ?{_MARK}$", "", name)


def results_of(report: Iterable[Mapping[str, Any]]) -> list[SpecResult]:
    """The specs that ran, of ginkgo's JSON report. A failure before the first spec is a result of its own."""
    found = []
    for suite in report:
        for spec in suite.get("SpecReports") or ():
            is_spec = spec["LeafNodeType"] == "It"
            if spec["State"] == "skipped" and not spec.get("Failure", {}).get("Message"):
                continue  # not in focus
            if spec["State"] in ("passed", "pending") and not is_spec:
                continue
            hierarchy = [*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]]
            name = " ".join(hierarchy) if is_spec else spec["LeafNodeType"]
            cause = _cause(spec) if spec["State"] != "passed" else ""
            found.append(SpecResult(name, spec["State"] == "passed", spec["RunTime"] / 1e9, cause))
    return sorted(found, key=lambda each: each.name)


def _cause(spec: Mapping[str, Any]) -> str:
    message = " ".join(((spec.get("Failure") or {}).get("Message") or spec["State"]).split())
    return message if len(message) <= _LONGEST_CAUSE else message[: _LONGEST_CAUSE - 1] + "…"


def known_failures(parity: str, chapter: Chapter, runtime: str = "containerd") -> dict[str, str]:
    """Specs that do not pass, by short name, with the reason: rows `| why | `spec`, `spec` |` of docs/parity.md. A row
    whose reason begins with a runtime is about that runtime only."""
    table = parity.partition(chapter.begin)[2].partition(chapter.end)[0]
    known: dict[str, str] = {}
    for line in table.splitlines():
        if not line.startswith("|") or line.startswith(("|---", "| why")):
            continue
        why, names = line.strip("| ").split(" | ", 1)
        if (only := re.match(r"`--runtime (\w+)`", why)) and only[1] != runtime:
            continue
        known |= dict.fromkeys(re.findall(r"`([^`]+)`", names), why)
    return known


def complaints(
    results: Iterable[SpecResult], known: Mapping[str, str], chapter: Chapter, focus: str
) -> list[str]:
    """Where results and list disagree; of the list only specs in focus count."""
    by_name = {short(each.name): each for each in results}
    found = [
        f"{name} does not pass, and docs/parity.md does not list it: {each.cause}"
        for name, each in by_name.items()
        if not each.passed and name not in known
    ]
    for name in known:
        ran = by_name.get(name)
        if ran is None and chapter.has(name, focus):
            found.append(f"{name} is listed in docs/parity.md, and did not run")
        elif ran is not None and ran.passed:
            found.append(f"{name} is listed in docs/parity.md, and passes")
    return found


def table(results: Iterable[SpecResult], known: Mapping[str, str]) -> str:
    rows = [
        f"{'passed' if each.passed else 'failed':6}  {each.seconds:5.0f} s  {short(each.name)}"
        + ("" if each.passed else f"\n{'':17}{known.get(short(each.name)) or each.cause}")
        for each in results
    ]
    return "\n".join(rows)
