"""Kinds that several threads meet for the first time at once: msgspec ends the process if it is not kept from it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, threading

from podlife.api.schema import check

sys.setswitchinterval(1e-6)
kinds = [("v1", "Pod"), ("apps/v1", "Deployment"), ("batch/v1", "Job"), ("v1", "Node"), ("v1", "Service")]
together = threading.Barrier(4)
checked = []


def work():
    for version, kind in kinds:
        together.wait()
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
        checked.append(check(version, kind, obj))


threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
assert checked == [[]] * 20
"""


def test_kinds_that_threads_check_at_once_are_learnt_once() -> None:
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
