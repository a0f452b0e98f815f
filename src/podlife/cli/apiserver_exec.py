"""Prepares the data directory for `podlife apiserver`, then executes the server process.

The libraries that parse the command line and sign certificates would take a third of the server's memory. So both
happen first, and then the process executes this module again with its settings as JSON.

A signal in between would leave a temporary directory with credentials behind. So signals are blocked before it is
created, and across the exec, until the server handles them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from podlife.apiserver.settings import ApiServerSettings
from podlife.daemons.event_loop import hold_back_signals
from podlife.errors import ConfigError

if TYPE_CHECKING:
    from podlife.apiserver.server import ServingInfo


def serve(settings: ApiServerSettings) -> NoReturn:
    """Prepare the data directory and become the server; raises ConfigError if the directory cannot be used."""
    import shutil
    import tempfile

    if settings.data is None:
        hold_back_signals()
        data = Path(tempfile.mkdtemp(prefix="podlife-"))
        settings = replace(settings, data=data, is_temporary=True)
    assert settings.data is not None
    try:
        prepare(settings, settings.data)
    except BaseException:
        if settings.is_temporary:
            shutil.rmtree(settings.data, ignore_errors=True)
        raise
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: do not import from the working directory, which other users may control.
    encoded = json.dumps(asdict(settings) | {"data": str(settings.data)})
    arguments = [sys.executable, "-P", "-m", "podlife.cli.apiserver_exec", encoded]
    os.execve(sys.executable, arguments, _environment())  # noqa: S606 - this program, with its own arguments


def _environment() -> dict[str, str]:
    """The HTTP library reads the system's CAs on import, a fifth of the start time. The server trusts only its own CA,
    so they are hidden from it."""
    return os.environ | {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


def prepare(settings: ApiServerSettings, data: Path) -> None:
    """Create the server's files in its data directory; raises ConfigError if it cannot be used."""
    from podlife.apiserver.identities import prepare_identities
    from podlife.apiserver.storage.data_dir import DataDir
    from podlife.clock import SystemClock
    from podlife.localcluster.bootstrap_token import BootstrapToken
    from podlife.localcluster.state_dir import StateDir

    # No other process may use the directory meanwhile; the server claims it again while it runs.
    claim = DataDir(data)
    claim.claim()
    try:
        # Before the identities: a directory with identities but without a store has lost its store.
        claim.prepare(in_memory=settings.in_memory)
        holder = StateDir(data).holder()
        if holder is None or not holder.is_alive:
            # The token of a killed `podlife up` must not outlive it.
            BootstrapToken(data).revoke()
        prepare_identities(settings, data, SystemClock())
    except OSError as error:
        raise ConfigError(f"the data folder {data} cannot be used: {error.strerror}") from error
    finally:
        claim.release()


def _welcome(serving: ServingInfo, settings: ApiServerSettings) -> str:
    kept = "memory only" if settings.in_memory else str(serving.folder)
    return f"""\
The API server is ready on {serving.url} (data: {kept}).

  export KUBECONFIG={shlex.quote(str(serving.kubeconfig()))}

  kubectl get namespaces
  kubectl run web --image=nginx
  kubectl get pods --watch

Ctrl-C stops it."""


def _run() -> None:
    from podlife.daemons.apiserver import run_process

    fields = json.loads(sys.argv[1])
    lists = {name: tuple(fields[name]) for name in ("names", "service_account_key_files")}
    settings = ApiServerSettings(**fields | lists | {"data": Path(fields["data"])})
    run_process(settings, lambda serving: print(_welcome(serving, settings), flush=True))


if __name__ == "__main__":
    from podlife.cli.guard import guard

    guard(_run)
