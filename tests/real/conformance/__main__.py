"""The command. Its exit status is 0 if exactly the specs listed in docs/parity.md do not pass."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kit.real_parts import ROOT, part, tools
from tests.kit.up_process import running_up
from tests.real.conformance import containers
from tests.real.conformance.specs import CHAPTERS, complaints, known_failures, results_of, table

PARITY = ROOT / "docs" / "parity.md"
PARTS = ("e2e.test", "ginkgo", "kubectl")
# A spec that fails waits for minutes; this is for all of them.
_SUITE_SECONDS = 3 * 3600
_NODES = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Run Kubernetes' conformance suite against `podlife up`.")
    parser.add_argument(
        "--chapter", default="api", choices=tuple(CHAPTERS), help="the specs to run (default: api)"
    )
    parser.add_argument("--focus", default="", help="regular expression: only specs whose names match")
    parser.add_argument(
        "--runtime",
        default="containerd",
        choices=("containerd", "sim"),
        help="container runtime of the cluster; containerd needs root, sim fails the specs that talk to their pods",
    )
    parser.add_argument("--containerd-socket", help=argparse.SUPPRESS)
    parser.add_argument("--advertise-address", help=argparse.SUPPRESS)
    parser.add_argument("--procs", type=int, default=4, help="specs at once")
    parser.add_argument("--keep", type=Path, help="folder for the suite's report and output")
    options = parser.parse_args()
    # Leave no process behind, however this one is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.runtime == "containerd" and not options.containerd_socket:
        return _run_beside_containerd()
    tools().prepare(PARTS)
    chapter = CHAPTERS[options.chapter]
    focus = chapter.focus(options.focus)
    with tempfile.TemporaryDirectory(prefix="podlife-conformance-") as scratch:
        kept = options.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        flags = ["--runtime", options.runtime, "--nodes", str(_NODES), "--no-ui"]
        if options.containerd_socket:
            flags += ["--containerd-socket", options.containerd_socket]
            flags += ["--advertise-address", options.advertise_address]
        with running_up(Path(scratch), *flags) as up:
            report = _run_suite(focus, up.kubeconfig, kept, options.procs)
    results = results_of(report)
    known = known_failures(PARITY.read_text(), chapter, options.runtime)
    found = complaints(results, known, chapter, focus)
    passed = sum(each.passed for each in results)
    sys.stdout.write(f"{table(results, known)}\n{passed} of {len(results)} specs passed\n")
    sys.stderr.writelines(f"conformance: {complaint}\n" for complaint in found)
    return 1 if found or not results else 0


def _run_beside_containerd() -> int:
    """Run all of this again in the network of a containerd, so that cluster, suite and pods reach each other."""
    tools().prepare((*PARTS, *containers.PARTS))
    with containers.containerd_for_the_suite() as daemon:
        inside = ["nsenter", f"--net={daemon.network}", sys.executable, "-m", "tests.real.conformance"]
        flags = ["--containerd-socket", str(daemon.socket), "--advertise-address", daemon.make_gateway()]
        command = [*inside, *sys.argv[1:], *flags]
        return subprocess.run(command, check=False, timeout=_SUITE_SECONDS + 600).returncode


def _run_suite(focus: str, kubeconfig: Path, folder: Path, procs: int) -> list[dict[str, object]]:
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [
        *(str(part("ginkgo")), f"--procs={procs}", f"--focus={focus}", "--timeout=3h"),
        *(
            "--no-color",
            "--silence-skips",
            "--output-interceptor-mode=none",
            f"--json-report={report.name}",
            f"--output-dir={folder}",
        ),
        *(str(part("e2e.test")), "--", "--provider=skeleton", f"--kubeconfig={kubeconfig}"),
        *(f"--kubectl-path={part('kubectl')}", f"--num-nodes={_NODES}", "--node-schedulable-timeout=20s"),
    ]
    with (folder / "output.log").open("w") as output:
        subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_SUITE_SECONDS,
            cwd=folder,
        )
    if not report.exists():
        end = (folder / "output.log").read_text().splitlines()[-5:]
        raise SystemExit("conformance: the suite did not run: " + " / ".join(end))
    found: list[dict[str, object]] = json.loads(report.read_text())
    return found


if __name__ == "__main__":
    sys.exit(main())
