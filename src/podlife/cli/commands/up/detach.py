"""`podlife up --detach`: the same command once more, in a session of its own, whose output goes into a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from podlife.cli.commands.up.lines import LAST_WORDS
from podlife.cli.program import command_for
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.state_dir import StateDir, default_state_dir

__all__ = ["detach"]

_START_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def detach(data: Path | None) -> None:
    """Returns when it is up. Raises PodlifeError with its reason when it is not."""
    folder = StateDir(data or default_state_dir())
    log = _open_log(folder)
    arguments = [each for each in sys.argv[1:] if not each.startswith("--detach")]
    began = folder.log("up").stat().st_size
    with os.fdopen(log, "ab") as output:
        process = subprocess.Popen(  # noqa: S603 - ourselves, with what we were given
            # -P: the folder it is started in is the user's, or anybody's; no code is to be found there.
            [sys.executable, "-P", "-m", "podlife", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    said = _wait(process, folder.log("up"), began)
    stop = command_for(folder, "down")
    print(said.partition(LAST_WORDS)[0] + f"`{stop}` stops it (what it says is in {folder.log('up')}).")


def _open_log(folder: StateDir) -> int:
    try:
        folder.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(folder.log("up"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the data folder {folder.path} cannot be used: {error.strerror}; name another with --data"
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
