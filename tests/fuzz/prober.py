"""Somebody else, who asks for a small object again and again: how long they wait is what a hostile request costs.

A process of its own, so that nothing but the server delays it: `python -m tests.fuzz.prober HOST PORT CA TOKEN PATH`.
It asks until its input ends, and prints the seconds that each answer took, the slowest last.
"""

from __future__ import annotations

import json
import select
import ssl
import subprocess
import sys
import time
from http.client import HTTPSConnection

from tests.kit.server_process import ServerProcess

_PAUSE_SECONDS = 0.005


class Prober:
    """Starts the process; `waited` ends it and gives what it measured."""

    def __init__(self, server: ServerProcess, path: str) -> None:
        authority = str(server.data / "pki" / "ca.crt")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(server.port), authority, server.token, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        # The first answer has come: connections and caches are warm.
        assert self._process.stdout.readline() == b"ready\n"

    def waited(self) -> list[float]:
        output, _ = self._process.communicate(timeout=120)
        assert self._process.returncode == 0
        found: list[float] = json.loads(output)
        return found


def main(port: str, authority: str, token: str, path: str) -> None:
    tls = ssl.create_default_context(cafile=authority)
    connection = HTTPSConnection("127.0.0.1", int(port), context=tls, timeout=110)
    seconds: list[float] = []
    while not select.select([sys.stdin], [], [], _PAUSE_SECONDS)[0]:
        began = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        seconds.append(time.perf_counter() - began)
        if len(seconds) == 1:
            print("ready", flush=True)  # noqa: T201
    print(json.dumps(sorted(seconds[1:])))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
