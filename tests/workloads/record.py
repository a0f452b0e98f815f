"""Records golden end states: `python -m tests.workloads.record replicaset [name ...]`.

Runs every scenario twice with kube-controller-manager on kube-apiserver, and writes only what came out the same both
times; exits with 1 when something did not, or did not get through. Needs `make real-parts`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.kit.real_parts import Server, controller_manager, kube_apiserver
from tests.workloads.runs import KUBE_CONTROLLERS, KubeQuota, Outcome, connect, observing, play_all
from tests.workloads.scenario import Scenario, golden_file, scenarios_of
from tests.workloads.snapshot import Snapshot, difference

# More than the runs that compare have: what comes late has to be in it.
QUIET_SECONDS = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.workloads.record")
    parser.add_argument("workload")
    parser.add_argument("names", nargs="*", help="scenarios; all of the workload when left out")
    options = parser.parse_args()
    chosen = list(scenarios_of(options.workload))
    if unknown := {*options.names} - {each.name for each in chosen}:
        sys.exit(f"{options.workload} has no such scenario: {', '.join(sorted(unknown))}")
    chosen = [each for each in chosen if not options.names or each.name in options.names]
    with (
        tempfile.TemporaryDirectory() as folder,
        kube_apiserver(Path(folder) / "kube") as server,
        controller_manager(Path(folder) / "kcm", server, KUBE_CONTROLLERS),
    ):
        runs = asyncio.run(_play_twice(server, chosen))
    return _write(chosen, runs)


async def _play_twice(server: Server, chosen: Sequence[Scenario]) -> list[dict[str, Outcome]]:
    async with (
        connect(server.kubeconfig) as client,
        observing(client, KubeQuota(client), quiet_seconds=QUIET_SECONDS) as cluster,
    ):
        return [await play_all(cluster, chosen, {}, suffix) for suffix in "ab"]


def _write(chosen: Sequence[Scenario], runs: list[dict[str, Outcome]]) -> int:
    path = golden_file(chosen[0].workload)
    written: dict[str, Snapshot] = json.loads(path.read_text()) if path.exists() else {}
    failed = 0
    for scenario in chosen:
        first, second = (run[str(scenario)] for run in runs)
        why = _why_not(first, second)
        print(f"{scenario}: {why or 'recorded'}")  # noqa: T201 - a command
        if why or first.snapshot is None:
            failed += 1
        else:
            written[scenario.name] = first.snapshot
    known = {each.name for each in scenarios_of(chosen[0].workload)}
    written = {name: snapshot for name, snapshot in written.items() if name in known}
    path.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")
    return 1 if failed else 0


def _why_not(first: Outcome, second: Outcome) -> str:
    for outcome in (first, second):
        if outcome.error is not None:
            return f"failed: {outcome.error!r}"
    assert first.snapshot is not None
    assert second.snapshot is not None
    return difference(first.snapshot, second.snapshot)


if __name__ == "__main__":
    sys.exit(main())
