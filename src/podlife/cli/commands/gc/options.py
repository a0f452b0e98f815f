"""The options of `podlife gc`, and what is wrong with them: said before anything is connected to."""

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

# As in podlife.podgc, which a command that only shows its help does not load; a test holds them together.
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
        "Rules, protections and guards; `podlife gc policy` is about such files.",
        envvar="PODLIFE_GC_POLICY",
        parser=_parse_policy,
        show_default="upstream's",
    ),
]


def given_policy(path: Path | None) -> Policy | None:
    """What the file says; when it is no policy, all that is wrong with it is told, and that is the end."""
    if path is None:
        return None
    from podlife.podgc import PolicyError, load_policy

    try:
        return load_policy(path)
    except PolicyError as error:
        # A line for each mistake, as compilers have them: editors and build logs lead to the place.
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which of the pods that are to be collected; which those are is always decided over the whole cluster."""

    namespace: OneNamespaceOption = None
    all_namespaces: EveryNamespaceOption = False
    selector: Annotated[str | None, option("LABELS", "Only pods with these labels.", "-l", "--selector")] = (
        None
    )

    def selection(self) -> Selection:
        """Which pods are meant; raises BadParameter when that contradicts itself or cannot be read."""
        from podlife.api.selectors import parse_label_selector
        from podlife.podgc import Selection

        namespace = checked_namespace(self.namespace, is_everywhere=self.all_namespaces)
        if self.selector is None:
            return Selection(namespace)
        # As with an empty namespace: it must not mean every pod there is.
        if not self.selector.strip():
            raise typer.BadParameter("-l is empty: name labels, or leave it out for all pods")
        try:
            parse_label_selector(self.selector)
        except ValueError as error:
            raise typer.BadParameter(f"-l {self.selector!r} cannot be read: {error}") from None
        return Selection(namespace, self.selector)


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    policy: PolicyFileOption = None
    terminated_pod_gc_threshold: Annotated[
        int, number_option("How many terminated pods may stay in the cluster; 0 or less keeps all of them.")
    ] = 12_500
    quarantine: Annotated[
        float, quarantine_option("How long a node must be gone before its pods are collected.")
    ] = 40.0
    collect: Annotated[
        list[str] | None,
        option(
            "REASONS",
            f"What to collect, of {', '.join(REASONS)} (with commas, or repeated).",
            show_default="all",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        option(
            "GATE=BOOL",
            f"Older behaviour, of {', '.join(GATES)} (with commas, or repeated).",
            show_default="all true",
        ),
    ] = None

    def policy_file(self) -> Policy | None:
        return given_policy(self.policy)

    def settings(self, *, period: float = 20.0) -> Settings:
        """What the collector decides by; raises BadParameter."""
        return replace(self.flags(period=period), policy=self.policy_file())

    def flags(self, *, period: float = 20.0) -> Settings:
        """What the flags say alone, without the file; raises BadParameter."""
        from podlife.podgc import FeatureGates, Reason, Settings

        reasons = REASONS if self.collect is None else words(self.collect)
        if not reasons:
            raise typer.BadParameter(f"--collect is empty: there are {', '.join(REASONS)}")
        if unknown := sorted(set(reasons) - set(REASONS)):
            raise typer.BadParameter(f"--collect knows no {unknown[0]!r}: there are {', '.join(REASONS)}")
        return Settings(
            threshold=self.terminated_pod_gc_threshold,
            period_seconds=period,
            quarantine_seconds=self.quarantine,
            collect=frozenset(map(Reason, reasons)),
            gates=FeatureGates(**_gates(self.feature_gates)),
        )


def _gates(given: list[str] | None) -> dict[str, bool]:
    """The switches by the names that podlife.podgc has for them."""
    gates = {}
    for word in words(given):
        name, _, value = word.partition("=")
        if name not in GATES:
            raise typer.BadParameter(f"--feature-gates knows no {name!r}: there are {', '.join(GATES)}")
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
    """Guards beside those of a policy, or without one."""

    max_per_minute: Annotated[
        int | None,
        number_option(
            "Never delete more pods than this in a minute, nor more than the policy allows.",
            1,
            show_default="no bound",
        ),
    ] = None
    observe: Annotated[
        bool, typer.Option("--observe", help="Decide and tell everything, change nothing.")
    ] = False
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Go on where the policy's share of a namespace or of the cluster would stop it."
        ),
    ] = False

    def on(self, flags: Settings) -> Settings:
        """The settings with these; with nothing said they are as they were."""
        if self.max_per_minute is None and not self.observe:
            return replace(flags, is_forced=self.force)
        from podlife.podgc.policy.model import Guards

        guards = Guards(per_minute=self.max_per_minute, is_observing=self.observe)
        return replace(flags, guards=guards, is_forced=self.force)
