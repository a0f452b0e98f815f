"""The workloads of a demo: small programs that write to a journal when they start and when they receive SIGTERM.

The journal holds the PIDs of real processes, so that a demo can compare what runs with what the API server reports.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.api.codec import Object

# Kubernetes expands $$ to one dollar sign, so the shell's PID needs four.
_SAY = 'echo "$POD_NAME $$$$ $NODE_NAME {word}" >> "$JOURNAL"'
_POLL_SECONDS = 0.05
_ENV: list[dict[str, Any]] = [
    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """`at` is the time of the event loop when it was read."""

    at: float
    pod: str
    pid: int
    node: str
    word: str


class Journal:
    """Words: `began`, and `ended` after SIGTERM; scenarios add others."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.path.touch(mode=0o600)
        self._lines: list[JournalEntry] = []
        self._read = 0

    async def run(self) -> None:
        """Follow the file, so that entries get accurate times."""
        while True:
            self._take()
            await asyncio.sleep(_POLL_SECONDS)

    def lines(self, pod: str = "", word: str = "") -> list[JournalEntry]:
        self._take()
        return [each for each in self._lines if pod in ("", each.pod) and word in ("", each.word)]

    def _take(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._read)
            # A line that is still being written is read next time.
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        self._lines += [_line(each) for each in whole.decode().splitlines()]

    def alive(self, pod: str, node: str) -> list[int]:
        """The processes of a pod that run on this node."""
        found = [each.pid for each in self.lines(pod, "began") if each.node == node]
        return [pid for pid in found if _is_alive(pid, self.path)]

    def say(self, word: str) -> str:
        """A shell command that writes an entry."""
        return _SAY.format(word=word)

    def hook(self, script: str) -> Object:
        """A preStop hook; in its command a dollar sign is not expanded."""
        begin, end = (self.say(word).replace("$$$$", "$$") for word in ("hook-began", "hook-ended"))
        return {"preStop": {"exec": {"command": ["sh", "-c", f"{begin}; {script}; {end}"]}}}

    def container(self, script: str, **fields: Any) -> Object:
        env = [*_ENV, {"name": "JOURNAL", "value": str(self.path)}]
        whole = f"{self.say('began')}; {script}"
        return {"name": "main", "image": "demo", "command": ["sh", "-c", whole], "env": env, **fields}

    def stubborn(self, **fields: Any) -> Object:
        """A container that ignores SIGTERM."""
        script = f"trap '{self.say('asked')}' TERM; while :; do sleep 100000 & wait; done"
        return self.container(script, **fields)

    def polite(self, **fields: Any) -> Object:
        """A container that ends on SIGTERM."""
        script = f"trap '{self.say('ended')}; kill $!; exit 0' TERM; sleep 100000 & wait"
        return self.container(script, **fields)


def _line(line: str) -> JournalEntry:
    pod, pid, node, word = line.split()
    return JournalEntry(asyncio.get_running_loop().time(), pod, int(pid), node, word)


def _is_alive(pid: int, journal: Path) -> bool:
    """Whether the PID still belongs to a container: only those have the journal in their environment."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"JOURNAL={journal}".encode() in environment.split(b"\0")


def template(app: str, container: Object, *, grace_seconds: int) -> Object:
    spec = {"containers": [container], "terminationGracePeriodSeconds": grace_seconds}
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def deployment(name: str, replicas: int, of: Object, *, kind: str = "Deployment", **spec: Any) -> Object:
    selector = {"matchLabels": of["metadata"]["labels"]}
    whole = {"replicas": replicas, "selector": selector, "template": of, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def stateful_set(name: str, replicas: int, of: Object) -> Object:
    return deployment(name, replicas, of, kind="StatefulSet", serviceName=name)


def pod(name: str, of: Object, **spec: Any) -> Object:
    metadata = {"name": name, "labels": of["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**of["spec"], **spec}}
