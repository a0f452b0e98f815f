"""What a user types to call this program again, for messages that say what to do next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from podlife.localcluster.state_dir import StateDir, default_state_dir


def command_for(folder: StateDir, verb: str) -> str:
    """A command for the cluster of the folder and no other."""
    is_default = folder.path.resolve() == default_state_dir().resolve()
    data = "" if is_default else f" --data {shlex.quote(str(folder.path))}"
    return f"{program()} {verb}{data}"


def program() -> str:
    """`podlife`, where the shell finds this one under that name; otherwise the way to it. After `make up` it is in a
    virtual environment that is not on PATH, or another podlife is."""
    script = Path(sys.executable).with_name("podlife")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m podlife"
    found = shutil.which("podlife")
    if found is not None and Path(found).samefile(script):
        return "podlife"
    here = os.path.relpath(script)
    return shlex.quote(str(script) if here.startswith("..") else here)
