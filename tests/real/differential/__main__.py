"""`python -m tests.real.differential [--area pods] [--step NAME] [--real-only]`: the differences, side by side."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from tests.kit.real_parts import kube_apiserver, podlife_apiserver
from tests.real.differential.areas import AREAS
from tests.real.differential.compare import AreaRun, Outcome, Side
from tests.real.differential.differences import DIFFERENCES, Known, write_parity
from tests.real.differential.steps import Area
from tests.real.differential.target import Target


def main() -> int:
    options = _options()
    if options.write_parity:
        write_parity()
        return 0
    areas = [area for area in AREAS if not options.area or area.name in options.area]
    with tempfile.TemporaryDirectory(prefix="podlife-differential-") as folder, ExitStack() as stack:
        real = Target(stack.enter_context(kube_apiserver(Path(folder) / "kube")))
        stack.callback(real.close)
        if options.real_only:
            return sum(_show_real(area, real, options) for area in areas)
        start = kube_apiserver if options.against_itself else podlife_apiserver
        ours = Target(stack.enter_context(start(Path(folder) / "ours")))
        stack.callback(ours.close)
        return 1 if sum(_show_both(area, real, ours, options) for area in areas) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.real.differential")
    parser.add_argument("--area", action="append", help="only this area (may be given several times)")
    parser.add_argument("--step", help="show only steps whose name contains this, and show them whole")
    parser.add_argument("--real-only", action="store_true", help="run the table against kube-apiserver alone")
    parser.add_argument(
        "--against-itself", action="store_true", help="two kube-apiservers: what differs is the table's fault"
    )
    parser.add_argument("--write-parity", action="store_true", help="write the table in docs/parity.md")
    return parser.parse_args()


def _show_real(area: Area, real: Target, options: argparse.Namespace) -> int:
    side, wrong = Side(real, area), 0
    for step in area.steps:
        shown = side.take(step)
        is_wrong = step.code not in (0, shown["code"])
        wrong += is_wrong
        if is_wrong:
            _say(
                f"WRONG {step.id}: expected {step.code}, got {shown['code']}: {json.dumps(shown['body'])[:700]}"
            )
        elif options.step and options.step in step.name:
            _say(f"{step.id}: {json.dumps(shown, indent=1)}")
    _say(f"{area.name}: {len(area.steps)} steps, {wrong} unsound")
    return wrong


def _show_both(area: Area, real: Target, ours: Target, options: argparse.Namespace) -> int:
    run = AreaRun(area, real, ours)
    outcomes = [run.outcome(step) for step in area.steps]
    listed = {} if options.against_itself else DIFFERENCES
    differing = [
        outcome
        for outcome in _unexpected(outcomes, listed)
        if not options.step or options.step in outcome.step.id
    ]
    for outcome in differing:
        _say(f"\n--- {outcome.step.id}: {outcome.step.method} {outcome.step.path}")
        for difference in outcome.differences:
            _say(f"    {difference}")
        if options.step:
            _say(f"    real: {json.dumps(outcome.real)}\n    ours: {json.dumps(outcome.ours)}"[:20_000])
    _say(f"\n{area.name}: {len(outcomes)} steps, {len(differing)} differ")
    return len(differing)


def _unexpected(outcomes: list[Outcome], listed: Mapping[str, Known]) -> Iterator[Outcome]:
    for outcome in outcomes:
        known = listed.get(outcome.step.id)
        if (known is None and outcome.differences) or (
            known is not None and known.complaint(outcome.differences)
        ):
            yield outcome


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


sys.exit(main())
