"""The kubelet as a daemon.

One kubelet at a time uses a data directory, and one serves a node's name: a second one is refused. Stopping it leaves
its pods running; the next kubelet on the same directory continues with them. It waits for an unreachable API server,
since pods may already be running; refused credentials raise PodlifeError.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.client import NODES, Client, Connection
from podlife.clock import Clock, SystemClock
from podlife.daemons.connection import connected
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.errors import ConfigError, ForbiddenError, NotFoundError, UnreachableError
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import HostMachine, NodeSettings
from podlife.kubelet.runtime import Runtime
from podlife.kubelet.server import CertificateSettings, ServerSettings
from podlife.kubelet.settings import KubeletSettings

log = logging.getLogger(__name__)

_ACCESS_CHECK_SECONDS = 10.0
# Interval of node status checks; shorter for a node with a shorter lease.
_CHECK_SECONDS = 10.0
# Enough for a thousand clients with a command each. Not more: a client that connects and sends nothing costs memory
# until its handshake times out.
MOST_OPEN_FILES = 8192
# Built into every server.
_RIGHTS = "the ClusterRole system:node"

Taint = dict[str, str]


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """The container runtime of a node: `process`, `containerd` or `sim`."""

    data: Path
    kind: str = "process"
    containerd_socket: Path = Path("/run/containerd/containerd.sock")


@dataclass(frozen=True, slots=True)
class NodeDaemonSettings:
    name: str
    connection: Connection
    runtime: RuntimeSettings
    # Where logs, exec and metrics are served; without a host, on the node's own address.
    listen: tuple[str, int] = ("", 10250)
    # Empty: the address of this machine on the route to the API server.
    address: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int = 110
    static_pods: Path | None = None
    lease_seconds: int = 40
    takes_over: bool = False
    request_timeout_seconds: float = 60.0

    @property
    def data(self) -> Path:
        return self.runtime.data


async def run(settings: NodeDaemonSettings, *, shutdown: Shutdown = never_stopped) -> None:
    """Run the kubelet until `shutdown` or cancellation; its pods keep running. Raises PodlifeError if it cannot."""
    connection, data = settings.connection, settings.data
    clock = SystemClock()
    with _locked(data):
        timeout_seconds = settings.request_timeout_seconds
        async with connected(connection, timeout_seconds=timeout_seconds, rights=_RIGHTS) as client:
            await _check_access(settings.name, client, connection)
            address = settings.address or own_address(connection.server)
            runtime = make_runtime(settings.runtime, address, clock)
            agent = Kubelet(
                client, runtime, _agent_settings(settings, address), clock, machine=HostMachine(data)
            )
            log_fields = {"runtime": runtime.name, "address": address, "data": str(data)}
            log.info("node %s of %s", settings.name, connection.server, extra=log_fields)
            await _until_shutdown(agent, shutdown)
    log.info("ended; pods keep running")


@contextmanager
def _locked(data: Path) -> Iterator[None]:
    """Lock the data directory; the kernel releases the lock when the process ends."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(data / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{data} cannot be used: {error.strerror}; name another with --data") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"another node agent uses {data}: stop it first, or name another folder with --data"
            ) from None
        yield
    finally:
        os.close(lock)


async def _check_access(name: str, client: Client, connection: Connection) -> None:
    """Fail at start if the server refuses this node; wait for an unreachable one."""
    try:
        await client.with_timeout(_ACCESS_CHECK_SECONDS).get(NODES, name)
    except NotFoundError:
        log.debug("node %s is new", name)
    except ForbiddenError:
        raise ConfigError(
            f"the credentials of {connection.origin} are not those of node {name} (403): use some of user "
            f"system:node:{name} in group system:nodes, as `podlife apiserver kubeconfig --node {name}` makes them"
        ) from None
    except UnreachableError as error:
        log.warning("%s unreachable, waiting: %s", connection.server, error)


async def _until_shutdown(agent: Kubelet, shutdown: Shutdown) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.run(), name="agent")

        def stop() -> None:
            log.info("shutting down; pods keep running")
            running.cancel()

        with shutdown(stop):
            await asyncio.wait((running,))


def _agent_settings(settings: NodeDaemonSettings, address: str) -> KubeletSettings:
    host, port = settings.listen
    hostname = socket.gethostname()
    certificate = CertificateSettings(
        settings.name,
        settings.data / "pki",
        names=tuple(dict.fromkeys((settings.name, hostname, address))),
        client_authority=settings.connection.certificate_authority,
    )
    return KubeletSettings(
        node=NodeSettings(
            settings.name,
            # The machine's name may resolve to another address than the loopback.
            hostname=address if ip_address(address).is_loopback else hostname,
            addresses=(address,),
            # Several nodes on one machine are not one failure domain.
            labels={"kubernetes.io/hostname": settings.name, **settings.labels},
            taints=settings.taints,
            max_pods=settings.max_pods,
            lease_seconds=settings.lease_seconds,
            renew_seconds=settings.lease_seconds / 4,
            check_seconds=min(_CHECK_SECONDS, settings.lease_seconds / 4),
            takes_over=settings.takes_over,
        ),
        data=settings.data,
        static_pods=settings.static_pods,
        check_static_pod=check_static_pod,
        endpoint=ServerSettings(certificate, bind=host or address, port=port),
        api_server=settings.connection.server,
    )


def check_static_pod(pod: Object) -> list[str]:
    """Why an API server would reject the pod: a static pod must not run without a mirror pod."""
    from podlife.apiserver.strategies.core.pod.strategy import PodStrategy

    return [str(each) for each in PodStrategy().validate(pod)]


def make_runtime(settings: RuntimeSettings, address: str, clock: Clock) -> Runtime:
    # Imported on use: containerd needs a library that the others do not.
    match settings.kind:
        case "containerd":
            from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings

            return ContainerdRuntime(
                ContainerdSettings(settings.data / "containerd", socket=settings.containerd_socket)
            )
        case "sim":
            from podlife.kubelet.hollow.scenario import Scenario
            from podlife.kubelet.hollow.script import script_of
            from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld

            # Behaviour is only set by annotations of pods.
            return SimRuntime(SimWorld(clock, script_of(Scenario()), ips=(address,)))
        case _:
            from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings

            return ProcessRuntime(ProcessSettings(settings.data / "process", ips=(address,)), clock)


def own_address(server: str) -> str:
    """The address of this machine on the route to the server. Nothing is sent."""
    parts = urlsplit(server)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)
        family, type_, protocol, _, target = found[0]
        with socket.socket(family, type_, protocol) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
