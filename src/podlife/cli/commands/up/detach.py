"""`podlife up --detach`: starts the same command in a session of its own, with its output in a log file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from podlife.cli.commands.up.lines import LAST_WORDS, command_for
from podlife.daemons.xdg import default_data_dir
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.state_dir import StateDir

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def detach(data: Path | None) -> None:
    """Return when it is up. Raises PodlifeError with the reason when it is not."""
    state_dir = StateDir(data or default_data_dir())
    log = _open_log(state_dir)
    arguments = [each for each in sys.argv[1:] if not each.startswith("--detach")]
    began = state_dir.log("up").stat().st_size
    with os.fdopen(log, "ab") as output:
        process = subprocess.Popen(  # noqa: S603 - ourselves, with what we were given
            # -P: the working directory may be anybody's; no code is to be found there.
            [sys.executable, "-P", "-m", "podlife", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    said = _wait(process, state_dir.log("up"), began)
    stop = command_for(state_dir, "down")
    print(said.partition(LAST_WORDS)[0] + f"`{stop}` stops it (what it says is in {state_dir.log('up')}).")


def _open_log(state_dir: StateDir) -> int:
    try:
        state_dir.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(state_dir.log("up"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the data folder {state_dir.path} cannot be used: {error.strerror}; name another with --data"
        ) from None


def _wait(process: subprocess.Popen[bytes], log: Path, began: int) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        has_ended = process.poll() is not None
        said = log.read_bytes()[began:].decode(errors="replace")
        if LAST_WORDS in said:
            return said
        if has_ended:
            raise PodlifeError(said.strip().removeprefix("podlife: ") or f"it has ended: {log} may say why")
        if time.monotonic() > deadline:
            raise PodlifeError(f"it is not up after {_START_SECONDS:.0f} s: {log} may say why")
        time.sleep(_LOOK_SECONDS)
