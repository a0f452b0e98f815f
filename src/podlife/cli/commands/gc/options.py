"""The options of `podlife gc`, and what is wrong with them: said before anything is connected to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli import completions
from podlife.cli.options import parse_boolean, parse_duration, whole_number, words

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


def parse_quarantine(text: str | float) -> float:
    seconds = parse_duration(text)
    if seconds < 0:
        raise typer.BadParameter(
            f"{text!r} lies in the past: write how long a node must be gone, 0s for no time"
        )
    return seconds


def _parse_policy(text: str | Path) -> Path:
    if not str(text).strip():
        raise typer.BadParameter("it is empty: name a file, or leave it out to decide as Kubernetes does")
    return Path(text)


PolicyFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="PODLIFE_GC_POLICY",
        parser=_parse_policy,
        show_default="upstream's",
        help="Rules, protections and guards; `podlife gc policy` is about such files.",
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

    # None is not said; said and empty, as a script's variable may be, must not mean every pod there is.
    namespace: Annotated[
        str | None,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="Only pods of this namespace.",
            autocompletion=completions.namespaces,
        ),
    ] = None
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Pods of every namespace, as without -n.")
    ] = False
    selector: Annotated[
        str | None, typer.Option("-l", "--selector", metavar="LABELS", help="Only pods with these labels.")
    ] = None

    def selection(self) -> Selection:
        """Which pods are meant; raises BadParameter when that contradicts itself or cannot be read."""
        from podlife.podgc import Selection

        if self.namespace == "":
            raise typer.BadParameter("-n is empty: name a namespace, or leave it out for all of them")
        if self.selector is not None and not self.selector.strip():
            raise typer.BadParameter("-l is empty: name labels, or leave it out for all pods")
        if self.namespace and self.all_namespaces:
            raise typer.BadParameter("one namespace (-n) and every namespace (-A) exclude each other")
        if self.namespace:
            from podlife.api.names import check_dns_label

            if problems := check_dns_label(self.namespace):
                raise typer.BadParameter(f"{self.namespace!r} is no name of a namespace: {problems[0]}")
        if self.selector:
            from podlife.api.selectors import parse_label_selector

            try:
                parse_label_selector(self.selector)
            except ValueError as error:
                raise typer.BadParameter(f"-l {self.selector!r} cannot be read: {error}") from None
        return Selection(self.namespace or "", self.selector or "")


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """What makes a pod collectable."""

    policy: PolicyFileOption = None
    terminated_pod_gc_threshold: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number(),
            help="How many terminated pods may stay in the cluster; 0 or less keeps all of them.",
        ),
    ] = 12_500
    quarantine: Annotated[
        float,
        typer.Option(
            "--pod-gc-quarantine",
            "--quarantine",
            metavar="DURATION",
            parser=parse_quarantine,
            show_default="40s",
            help="How long a node must be gone before its pods are collected.",
        ),
    ] = 40.0
    collect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REASONS",
            show_default="all",
            help=f"What to collect, of {', '.join(REASONS)} (with commas, or repeated).",
        ),
    ] = None
    feature_gates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GATE=BOOL",
            show_default="all true",
            help=f"Older behaviour, of {', '.join(GATES)} (with commas, or repeated).",
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
