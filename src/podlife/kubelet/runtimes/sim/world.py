"""The simulated machine that containers run on. It outlives the kubelet and its `SimRuntime`.

Durations are the event loop's: under virtual time a container that runs for an hour ends at once. An idle container
costs nothing: containers have no tasks, and a timer exists only while something is due.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from podlife.clock import Clock
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    EventKind,
    ExecResult,
    RuntimeEvent,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Behaviour:
    """By default a container starts at once, runs indefinitely and exits as soon as it is stopped.

    Without `run_seconds` it does not exit on its own. `stop_seconds` is the time it takes to exit after the stop
    signal; None means that it has to be killed. `refusal` makes its creation fail, `start_error` its start."""

    start_seconds: float = 0.0
    run_seconds: float | None = None
    exit_code: int = 0
    stop_seconds: float | None = 0.0
    stop_exit_code: int = 143
    refusal: str = ""
    start_error: str = ""
    out_of_memory: bool = False
    output: tuple[str, ...] = ()
    termination_message: str = ""
    exec: Callable[[Sequence[str]], ExecResult] | None = None


Script = Callable[[SandboxConfig, ContainerConfig], Behaviour]
Pulling = Callable[[str], tuple[float, str]]
"""Returns how many seconds an image takes to pull, and the error; "" if it succeeds."""


@dataclass(slots=True)
class SimSandbox:
    id: str
    config: SandboxConfig
    created_at: datetime
    state: SandboxState = SandboxState.READY
    containers: dict[str, SimContainer] = field(default_factory=dict)


@dataclass(slots=True)
class SimContainer:
    id: str
    sandbox: SimSandbox
    config: ContainerConfig
    behaviour: Behaviour
    created_at: datetime
    log_path: Path | None = None
    state: ContainerState = ContainerState.CREATED
    is_starting: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    # When it will be killed, and the timer of its next event.
    kill_at: float | None = None
    timer: asyncio.TimerHandle | None = None
    starters: list[asyncio.Future[None]] = field(default_factory=list)
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


def _notify(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


class SimWorld:
    """State and time of simulated sandboxes and containers."""

    def __init__(
        self,
        clock: Clock,
        script: Script = lambda *_: Behaviour(),
        *,
        pulling: Pulling = lambda _: (0.0, ""),
        ips: tuple[str, ...] = ("127.0.0.1",),
    ) -> None:
        self.clock = clock
        self.script = script
        self._pulling = pulling
        # Images that were pulled.
        self.pulled: set[str] = set()
        self.ips = ips
        # Pull errors by image; all other images can be pulled.
        self.image_errors: dict[str, str] = {}
        # Why containers cannot be resized.
        self.resize_error = ""
        self.sandboxes: dict[str, SimSandbox] = {}
        self.containers: dict[str, SimContainer] = {}
        self.subscriptions = Subscriptions()
        self._by_pod: dict[str, dict[str, SimSandbox]] = {}
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        # Sequential, so that the same scenario gives the same IDs.
        return f"{next(self._numbers):064x}"

    def sandboxes_of(self, pod_uid: str) -> list[SimSandbox]:
        return list(self._by_pod.get(pod_uid, {}).values())

    def add_sandbox(self, sandbox: SimSandbox) -> None:
        self.sandboxes[sandbox.id] = sandbox
        self._by_pod.setdefault(sandbox.config.pod_uid, {})[sandbox.id] = sandbox

    def remove_sandbox(self, sandbox: SimSandbox) -> None:
        self.sandboxes.pop(sandbox.id, None)
        of_pod = self._by_pod.get(sandbox.config.pod_uid, {})
        of_pod.pop(sandbox.id, None)
        if not of_pod:
            self._by_pod.pop(sandbox.config.pod_uid, None)

    def missing_image(self, image: str) -> tuple[float, str] | None:
        """Seconds to pull the image and the error; None if it is present."""
        if image in self.pulled:
            return None
        seconds, error = self._pulling(image)
        error = error or self.image_errors.get(image, "")
        return (seconds, error) if seconds or error else None

    def switch_off(self) -> None:
        """Power loss: everything stops, and exit codes are lost."""
        for sandbox in self.sandboxes.values():
            sandbox.state = SandboxState.NOT_READY
            for container in sandbox.containers.values():
                if container.state is ContainerState.RUNNING or container.is_starting:
                    self.end(container, 255, "Unknown")
                    _notify(container.starters)

    def begin(self, container: SimContainer) -> None:
        """Start it, now or later, even if the caller is cancelled."""
        if container.behaviour.start_seconds > 0:
            loop = asyncio.get_running_loop()
            container.timer = loop.call_later(container.behaviour.start_seconds, self._start, container)
        else:
            self._start(container)

    def _start(self, container: SimContainer) -> None:
        container.is_starting, container.timer = False, None
        if container.behaviour.start_error:
            self.end(container, 128, "StartError", container.behaviour.start_error)
        else:
            self._run(container)
        _notify(container.starters)

    def _run(self, container: SimContainer) -> None:
        container.state = ContainerState.RUNNING
        container.started_at = self.clock.now()
        self._write_log(container)
        self.publish(EventKind.CONTAINER_STARTED, container.sandbox, container)
        if container.behaviour.run_seconds is not None:
            self._end_after(container, container.behaviour.run_seconds, container.behaviour.exit_code)

    def end(self, container: SimContainer, exit_code: int, reason: str = "", message: str = "") -> None:
        if container.state is ContainerState.EXITED:
            return
        if container.timer is not None:
            container.timer.cancel()
            container.timer = None
        container.is_starting = False
        container.state = ContainerState.EXITED
        container.finished_at = self.clock.now()
        container.started_at = container.started_at or container.finished_at
        container.exit_code = exit_code
        out_of_memory = exit_code != 0 and container.behaviour.out_of_memory
        container.reason = reason or (
            "OOMKilled" if out_of_memory else "Completed" if exit_code == 0 else "Error"
        )
        container.message = message
        _notify(container.waiters)
        self.publish(EventKind.CONTAINER_STOPPED, container.sandbox, container)

    def ask_to_stop(self, container: SimContainer, grace_seconds: float) -> None:
        """Exits on its own or is killed, whichever comes first; a later request can only shorten the time."""
        if container.state is not ContainerState.RUNNING:
            return
        now = asyncio.get_running_loop().time()
        kill_at = now + max(grace_seconds, 0.0)
        if container.kill_at is not None and kill_at >= container.kill_at:
            return
        own = container.behaviour.stop_seconds
        is_repeated = container.kill_at is not None
        container.kill_at = kill_at
        own_end = container.timer.when() if is_repeated and container.timer else None
        if grace_seconds <= 0:
            self.end(container, 137)
        elif own is not None and not is_repeated and own <= grace_seconds:
            self._end_no_later(container, now + own, container.behaviour.stop_exit_code)
        elif own_end is None or kill_at < own_end:
            self._end_no_later(container, kill_at, 137)

    def publish(self, kind: EventKind, sandbox: SimSandbox, container: SimContainer | None = None) -> None:
        container_id = container.id if container else ""
        self.subscriptions.publish(RuntimeEvent(kind, sandbox.config.pod_uid, sandbox.id, container_id))

    def sandbox_status(self, sandbox: SimSandbox) -> SandboxStatus:
        ips = self.ips if sandbox.state is SandboxState.READY else ()
        return SandboxStatus(sandbox.id, sandbox.config, sandbox.state, sandbox.created_at, ips)

    def container_status(self, container: SimContainer) -> ContainerStatus:
        has_ended = container.state is ContainerState.EXITED
        return ContainerStatus(
            id=container.id,
            sandbox_id=container.sandbox.id,
            pod_uid=container.sandbox.config.pod_uid,
            config=container.config,
            state=container.state,
            created_at=container.created_at,
            started_at=container.started_at,
            finished_at=container.finished_at,
            exit_code=container.exit_code,
            reason=container.reason,
            message=container.message,
            termination_message=container.behaviour.termination_message if has_ended else "",
            image_ref=container.config.image,
            log_path=container.log_path,
        )

    def _end_no_later(self, container: SimContainer, when: float, exit_code: int) -> None:
        """Unless it exits earlier on its own."""
        if container.timer is not None and container.timer.when() <= when:
            return
        self._end_after(container, when - asyncio.get_running_loop().time(), exit_code)

    def _end_after(self, container: SimContainer, seconds: float, exit_code: int) -> None:
        if container.timer is not None:
            container.timer.cancel()
        container.timer = asyncio.get_running_loop().call_later(seconds, self.end, container, exit_code)

    def _write_log(self, container: SimContainer) -> None:
        if container.log_path is None or not container.behaviour.output:
            return
        stamp = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        container.log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        container.log_path.touch(mode=0o600)
        with container.log_path.open("a") as log:
            log.writelines(f"{stamp} stdout F {line}\n" for line in container.behaviour.output)
