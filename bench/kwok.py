"""kwok as its users run it: with the stages that it brings, for every node there is.

Its stages are read from its own module. How many pods it works on at once is its default: with more of them many
of its patches are refused by kube-apiserver (two addresses of one family).
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.real_parts import Server, part, tail, tools

STAGES = ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete")
# As its own kwok.yaml has them, but for the nodes that it manages.
OPTIONS = {
    "manageAllNodes": True,
    "cidr": "10.0.0.0/24",
    "nodeLeaseDurationSeconds": 40,
    "nodeLeaseParallelism": 4,
    "nodePlayStageParallelism": 4,
    "podsOnNodeSyncParallelism": 4,
    "enablePodsOnNodeSyncStreamWatch": True,
}
LEASES = "node/heartbeat-with-lease/node-heartbeat-with-lease"


def prepare_kwok() -> None:
    """Build it, once per machine: only this benchmark needs it."""
    tools().prepare(("kwok",))


def _stages() -> str:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    found = subprocess.run(
        command, check=True, cwd=tools().KWOK_MODULE, capture_output=True, text=True, timeout=120
    )
    folder = Path(found.stdout.strip()) / "kustomize" / "stage"
    return "\n---\n".join((folder / f"{name}.yaml").read_text() for name in (*STAGES, LEASES))


@contextmanager
def kwok(folder: Path, server: Server, *, parallelism: int = 4) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration"}
    options = {**OPTIONS, "podPlayStageParallelism": parallelism}
    config, log = folder / "kwok.yaml", folder / "kwok.log"
    config.write_text(f"{json.dumps({**head, 'options': options})}\n---\n{_stages()}")
    command = [str(part("kwok")), f"--kubeconfig={server.kubeconfig}", f"--config={config}"]
    with log.open("wb") as output, ExitStack() as stack:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        time.sleep(1.0)
        assert process.poll() is None, tail(log)
        yield process
