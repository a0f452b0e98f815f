"""The interface of your compute: six methods, each about one piece of work, identified by its ID.

You may rely on this: `start` is called at most once for an ID, whatever crashes; all other calls may be repeated, and
calls for different IDs may run concurrently and in any order. You must ensure this: `runs` is accurate, including work
started by an earlier kubelet, and an end is remembered until `remove`. Raise any exception: that of `start` is shown to
users as the reason why the container failed to start; all other calls are retried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podlife.errors import PodlifeError
from podlife.kubelet.runtime import ContainerConfig, ExecResult, SandboxConfig
from podlife.kubelet.runtimes.process.supervisor.logfile import LogFile


class ComputeError(PodlifeError):
    """For your compute to raise; the message is shown to users. Other exceptions work as well."""


@dataclass(frozen=True, slots=True)
class End:
    """How a piece of work ended. By convention the exit code is 143 after a graceful stop and 137 after a kill. The
    default reason is `Completed` or `Error`, by exit code."""

    exit_code: int
    reason: str = ""
    message: str = ""
    termination_message: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A container to run. Command, arguments and environment are final."""

    id: str
    pod: SandboxConfig
    container: ContainerConfig
    log: LogFile | None = None

    def write(self, output: bytes | str, stream: str = "stdout") -> None:
        """Append to the output of `kubectl logs`. Blocks like any write to a file."""
        if self.log is not None:
            self.log.feed(stream, output.encode() if isinstance(output, str) else output)


class Compute(Protocol):
    async def start(self, work: Work) -> None:
        """Return when it is running; raise if it cannot be started."""

    async def stop(self, work_id: str, *, force: bool) -> None:
        """Ask it to end, or kill it with `force`; need not wait. Ignore work that has ended or was never started."""

    async def remove(self, work_id: str) -> None:
        """Forget it; it has ended or was never started."""

    async def runs(self) -> Mapping[str, End | None]:
        """All work by ID: None if it is running, or how it ended."""
        ...

    async def changed(self) -> None:
        """Return when something may have ended since the last call; if you cannot know, sleep a second."""

    async def exec(self, work_id: str, command: Sequence[str]) -> ExecResult:
        """Run a command in it and return the result. Cancelled when the caller is gone."""
        ...


@runtime_checkable
class Resuming(Protocol):
    """Optional, for compute whose work continues without the kubelet."""

    async def resume(self, work: Work) -> None:
        """A new kubelet has found this running: from now on, write its output to this work's log."""
