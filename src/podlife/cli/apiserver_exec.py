"""From the command to the process that serves: makes what is needed once, then becomes that process.

Parsing a command line and signing certificates take libraries that a server would carry for its whole life, a
third of its memory. So both happen here, and `serving` takes over in the same process, started afresh.

A signal that comes in between would leave a temporary folder, and the credentials in it, to nobody. So from before the
folder is made signals are held back, over the change of programs too, until `serving` can act on them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import NoReturn

from podlife.apiserver.identities import prepare_identities
from podlife.apiserver.settings import ApiServerSettings
from podlife.apiserver.storage.data_dir import DataDir
from podlife.clock import SystemClock
from podlife.daemons.event_loop import hold_back_signals
from podlife.errors import ConfigError
from podlife.localcluster.bootstrap_token import Joining
from podlife.localcluster.state_dir import UpFolder

__all__ = ["prepare", "serve"]


def serve(settings: ApiServerSettings) -> NoReturn:
    """Prepare the data folder and become the server; raises ConfigError when the folder cannot be used."""
    if settings.data is None:
        hold_back_signals()
        folder = Path(tempfile.mkdtemp(prefix="podlife-"))
        settings = replace(settings, data=folder, is_temporary=True)
    assert settings.data is not None
    try:
        prepare(settings, settings.data)
    except BaseException:
        if settings.is_temporary:
            shutil.rmtree(settings.data, ignore_errors=True)
        raise
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: the folder it is started in is the user's, or anybody's; no code is to be found there.
    arguments = [sys.executable, "-P", "-m", "podlife.daemons.apiserver", _to_json(settings)]
    os.execve(sys.executable, arguments, _environment())  # noqa: S606 - ourselves, with arguments of our own


def _environment() -> dict[str, str]:
    """The HTTP library reads all of the system's authorities when it is imported, a fifth of the start's time.

    The server trusts its own authority alone, so it is shown none of them. Python's own allocator returns an arena only
    when all of it is free, which after a burst of large requests is never; the C library returns pages (`memory`)."""
    environment = os.environ | {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
    return {"PYTHONMALLOC": "malloc"} | environment


def prepare(settings: ApiServerSettings, folder: Path) -> None:
    """Make what a server needs in its folder; raises ConfigError when it cannot be used."""
    # Nobody else may use the folder meanwhile; the server claims it again for as long as it runs.
    claim = DataDir(folder)
    claim.claim()
    try:
        # Before the identities: a folder that has them and no store has lost its store.
        claim.prepare(in_memory=settings.in_memory)
        holder = UpFolder(folder).holder()
        if holder is None or not holder.is_alive:
            # A token of an `up` that was killed: it was to end with that.
            Joining(folder).close()
        prepare_identities(settings, folder, SystemClock())
    except OSError as error:
        raise ConfigError(f"the data folder {folder} cannot be used: {error.strerror}") from error
    finally:
        claim.release()


def _to_json(settings: ApiServerSettings) -> str:
    return json.dumps(asdict(settings) | {"data": str(settings.data)})
