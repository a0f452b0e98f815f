"""How a user calls this program again, for messages that say what to do next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from podlife.daemons.xdg import default_data_dir
from podlife.localcluster.state_dir import StateDir


def command_for(state_dir: StateDir, verb: str) -> str:
    """A command for the cluster of this state directory and no other."""
    is_default = state_dir.path.resolve() == default_data_dir().resolve()
    data = "" if is_default else f" --data {shlex.quote(str(state_dir.path))}"
    return f"{program()} {verb}{data}"


def program() -> str:
    """`podlife` if the shell finds this program under that name; otherwise its path. After `make up` it is in a virtual
    environment that is not on PATH, or another podlife is."""
    script = Path(sys.executable).with_name("podlife")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m podlife"
    found = shutil.which("podlife")
    if found is not None and Path(found).samefile(script):
        return "podlife"
    here = os.path.relpath(script)
    return shlex.quote(str(script) if here.startswith("..") else here)
