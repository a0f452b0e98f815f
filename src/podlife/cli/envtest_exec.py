"""`kube-apiserver` of `podlife envtest`. envtest asks for help first, so that loads as little as possible."""

from __future__ import annotations

import os
import sys

from podlife.cli.guard import guard


def _run() -> None:
    from podlife.envtest.kube_apiserver import HELP, parse_flags

    if not {"-h", "--help"}.isdisjoint(sys.argv[1:]):
        print(HELP)
        return
    settings, notes = parse_flags(sys.argv[1:])
    for note in notes:
        print(f"podlife: {note}", file=sys.stderr)
    from podlife.daemons.event_loop import hold_back_signals

    # Until the server handles them: a signal must not leave its temporary folder behind.
    hold_back_signals()
    # The HTTP library reads the system's CAs on import, a fifth of the start time. The server needs none of them.
    os.environ.update(SSL_CERT_FILE=os.devnull, SSL_CERT_DIR=os.devnull)
    from podlife.daemons.apiserver import run_process

    run_process(settings, lambda serving: print(f"serving on {serving.url}", flush=True))


if __name__ == "__main__":
    guard(_run)
