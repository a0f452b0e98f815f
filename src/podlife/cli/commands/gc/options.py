"""Options of `podlife gc`. Invalid ones are reported before anything is connected."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podlife.cli.namespaces import EveryNamespaceOption, OneNamespaceOption, checked_namespace
from podlife.cli.options import duration_option, not_negative, number_option, option, parse_boolean, words

if TYPE_CHECKING:
    from podlife.podgc import Selection, Settings
    from podlife.podgc.policy import Policy

# As in podlife.podgc, which is too slow to load for `-h`; a test compares them.
REASONS = ("terminated", "out-of-service", "orphaned", "unscheduled")
GATES = {
    "JobPodReplacementPolicy": "job_pod_replacement_policy",
    "NodeOutOfServiceVolumeDetach": "node_out_of_service_volume_detach",
    "PodDisruptionConditions": "pod_disruption_conditions",
}


_parse_quarantine = not_negative("duration must not be negative")


def quarantine_option(help_: str) -> Any:
    return duration_option(help_, "40s", "--pod-gc-quarantine", "--quarantine", parser=_parse_quarantine)


def _parse_policy(text: str | Path) -> Path:
    if not str(text).strip():
        raise typer.BadParameter("it is empty: name a file, or leave it out to decide as Kubernetes does")
    return Path(text)


PolicyFileOption = Annotated[
    Path | None,
    option(
        "FILE",
        "Policy file with rules, protections and guards; see `podlife gc policy`.",
        envvar="PODLIFE_GC_POLICY",
        parser=_parse_policy,
        show_default="upstream's",
    ),
]


def given_policy(path: Path | None) -> Policy | None:
    """Load the policy file; if it is invalid, print all errors and exit."""
    if path is None:
        return None
    from podlife.podgc import PolicyError, load_policy

    try:
        return load_policy(path)
    except PolicyError as error:
        # One line per error in the format of compilers, which editors and CI understand.
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Restricts the deletion; the plan is always made for the whole cluster."""

    namespace: OneNamespaceOption = None
    all_namespaces: EveryNamespaceOption = False
    selector: Annotated[str | None, option("LABELS", "Only pods with these labels.", "-l", "--selector")] = (
        None
    )

    def selection(self) -> Selection:
        """Raises BadParameter for invalid or contradicting options."""
        from podlife.api.selectors import parse_label_selector
        from podlife.podgc import Selection

        namespace = checked_namespace(self.namespace, is_everywhere=self.all_namespaces)
        if self.selector is None:
            return Selection(namespace)
        # As with an empty namespace: it must not select every pod.
        if not self.selector.strip():
            raise typer.BadParameter("-l is empty: name labels, or leave it out for all pods")
        try:
            parse_label_selector(self.selector)
        except ValueError as error:
            raise typer.BadParameter(f"invalid label selector {self.selector!r}: {error}") from None
        return Selection(namespace, self.selector)


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    policy: PolicyFileOption = None
    terminated_pod_gc_threshold: Annotated[
        int, number_option("Maximum number of terminated pods in the cluster; 0 or less keeps all.")
    ] = 12_500
    quarantine: Annotated[
        float, quarantine_option("How long a node must be gone before its pods are collected.")
    ] = 40.0
    collect: Annotated[
        list[str] | None,
        option(
            "REASONS",
            f"Reasons to collect: {', '.join(REASONS)} (comma-separated or repeated).",
            show_default="all",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        option(
            "GATE=BOOL",
            f"Upstream feature gates: {', '.join(GATES)} (comma-separated or repeated).",
            show_default="all true",
        ),
    ] = None

    def policy_file(self) -> Policy | None:
        return given_policy(self.policy)

    def settings(self, *, period: float = 20.0) -> Settings:
        """The settings from flags and policy file; raises BadParameter."""
        return replace(self.flags(period=period), policy=self.policy_file())

    def flags(self, *, period: float = 20.0) -> Settings:
        """The settings from the flags alone; raises BadParameter."""
        from podlife.podgc import FeatureGates, Reason, Settings

        reasons = REASONS if self.collect is None else words(self.collect)
        if not reasons:
            raise typer.BadParameter(f"--collect is empty; choose from {', '.join(REASONS)}")
        if unknown := sorted(set(reasons) - set(REASONS)):
            raise typer.BadParameter(
                f"unknown --collect value {unknown[0]!r}; choose from {', '.join(REASONS)}"
            )
        return Settings(
            threshold=self.terminated_pod_gc_threshold,
            period_seconds=period,
            quarantine_seconds=self.quarantine,
            collect=frozenset(map(Reason, reasons)),
            gates=FeatureGates(**_gates(self.feature_gates)),
        )


def _gates(given: list[str] | None) -> dict[str, bool]:
    """Feature gates by their attribute in podlife.podgc."""
    gates = {}
    for word in words(given):
        name, _, value = word.partition("=")
        if name not in GATES:
            raise typer.BadParameter(f"unknown feature gate {name!r}; choose from {', '.join(GATES)}")
        if (is_on := parse_boolean(value)) is None:
            raise typer.BadParameter(f"--feature-gates {word!r} must be {name}=true or {name}=false")
        gates[GATES[name]] = is_on
    return gates


def check_period(seconds: float) -> float:
    if seconds <= 0:
        raise typer.BadParameter("--period must be longer than 0")
    return seconds


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Guards in addition to those of a policy."""

    max_per_minute: Annotated[
        int | None,
        number_option(
            "Maximum number of pods to delete per minute, in addition to the policy's limit.",
            1,
            show_default="no limit",
        ),
    ] = None
    observe: Annotated[
        bool, typer.Option("--observe", help="Only report what would be deleted; change nothing.")
    ] = False
    force: Annotated[
        bool,
        typer.Option("--force", help="Ignore the policy's limits on the share of a namespace or cluster."),
    ] = False

    def on(self, flags: Settings) -> Settings:
        """The settings with these guards added."""
        if self.max_per_minute is None and not self.observe:
            return replace(flags, is_forced=self.force)
        from podlife.podgc.policy.model import Guards

        guards = Guards(per_minute=self.max_per_minute, is_observing=self.observe)
        return replace(flags, guards=guards, is_forced=self.force)
