"""Runs the program of `docs/own-compute.md` as a user does: saved to a file, as a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.runtime.custom_machine import PAGE, blocks
from tests.kit.component_process import END_SECONDS
from tests.kit.wait import until_blocking

JOINED = "node my-node joined the cluster"
assert JOINED in PAGE
[POD] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@contextmanager
def running_page(folder: Path, kubeconfig: Path) -> Iterator[Path]:
    """Yields its output file once the node has joined."""
    program, output = folder / "my_node.py", folder / "output"
    program.write_text("\n\n".join(blocks()))
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(program)], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        until_blocking(lambda: JOINED in output.read_text() or process.poll() is not None, "it did not join")
        assert process.poll() is None, output.read_text()
        yield output
    finally:
        process.kill()
        process.wait(END_SECONDS)
