"""What your compute does: six methods, about one piece of work each, named by its ID.

What you may rely on: `start` is called at most once for an ID, whatever crashes; all other calls may be repeated, and
may come in any order for different IDs, at the same time. What you owe: `runs` tells the truth, also about what was
started by a kubelet before this one, and an end stays known until `remove`. Raise whatever you like: an exception of
`start` is shown to users as the reason why the container could not be started, any other is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from podlife.errors import PodlifeError
from podlife.kubelet.runtime import ContainerConfig, ExecResult, SandboxConfig
from podlife.kubelet.runtimes.process.supervisor.logfile import LogFile


class ComputeError(PodlifeError):
    """For your compute to raise; the text is shown to users. Any other exception will do as well."""


@dataclass(frozen=True, slots=True)
class End:
    """How a piece of work ended. By convention 143 is the code of one that ended because it was asked to, 137 of one
    that was made to. Without a reason it is `Completed` or `Error`, as the code says."""

    exit_code: int
    reason: str = ""
    message: str = ""
    termination_message: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A container to run. Command, arguments and environment are as they should be used."""

    id: str
    pod: SandboxConfig
    container: ContainerConfig
    log: LogFile | None = None

    def write(self, output: bytes | str, stream: str = "stdout") -> None:
        """What `kubectl logs` is to show. Blocks for as long as a write to a file does."""
        if self.log is not None:
            self.log.feed(stream, output.encode() if isinstance(output, str) else output)


class Compute(Protocol):
    async def start(self, work: Work) -> None:
        """Returns when it runs; raises if it cannot."""

    async def stop(self, work_id: str, *, force: bool) -> None:
        """Ask it to end, or make it. Need not wait until it has. What has ended, or was never started, is left."""

    async def remove(self, work_id: str) -> None:
        """Forget it: it has ended, or was never started."""

    async def runs(self) -> Mapping[str, End | None]:
        """All there is, by ID: None for what runs, its end for what has ended."""
        ...

    async def changed(self) -> None:
        """Returns when something may have ended since this was called last. Whoever cannot know sleeps a second."""

    async def exec(self, work_id: str, command: Sequence[str]) -> ExecResult:
        """Run a command beside it, to its end. It is cancelled when nobody waits for it any more."""
        ...


@runtime_checkable
class Resuming(Protocol):
    """What compute may do besides, if its work goes on without the kubelet."""

    async def resume(self, work: Work) -> None:
        """A kubelet has begun and found this running: from now on its output goes to this one's log."""
