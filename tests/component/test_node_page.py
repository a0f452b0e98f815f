"""docs/node.md, word for word: what it tells people to type in its three terminals does what it says.

Changed on the way: free ports, and a folder of the test's.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.component.test_readme import ROOT, Reader, blocks, read_until

PAGE = (ROOT / "docs" / "node.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as pods need Linux")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_what_is_typed_in_three_terminals_makes_a_node_and_runs_a_pod(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    _, first, second, third, away = blocks("", PAGE)
    make_identity, run_node = second.splitlines()
    with reader.running(shlex.split(first.replace("7443", str(reader.port)))) as server:
        read_until(server, "Ctrl-C stops it.")
        reader.type(make_identity)
        with reader.running([*shlex.split(run_node), "--listen", "127.0.0.1:0"]) as node:
            # Who types is slower than this: the node is there by then, and the pod has said something.
            said = third.replace(
                "kubectl logs hello", "until kubectl logs hello | grep hello; do sleep 0.1; done"
            )
            registered = "until kubectl get node n1 >/dev/null 2>&1; do sleep 0.1; done"
            shown = reader.type(f"export KUBECONFIG=one/admin.kubeconfig\n{registered}\n{said}\n{away}")
        assert node.returncode == 0
    assert "pod/hello condition met\nhello\n" in shown
    assert 'pod "hello" deleted' in shown
    assert "node/n1 drained" in shown
    assert 'node "n1" deleted' in shown
