"""`podlife node`: the agent of one node as a process.

One agent at a time has a data folder, and one the node's name: a second one is refused. A signal ends the agent with 0
and leaves its pods running; the next one on the same folder goes on with them. A server that is not there is waited
for, since pods may run already; one that does not know the node ends it with one line.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from podlife.api.codec import Object
from podlife.cli.commands.node import NodeCommand
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import NODES, Client, Connection
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop as loop
from podlife.daemons.limits import allow_many_open_files
from podlife.daemons.logs import set_up_logs
from podlife.errors import ConfigError, ForbiddenError, NotFoundError, UnreachableError
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import HostMachine, NodeSettings
from podlife.kubelet.runtime import Runtime
from podlife.kubelet.server import CertificateSettings, ServerSettings
from podlife.kubelet.settings import KubeletSettings

__all__ = ["make_runtime", "run_node"]

log = logging.getLogger(__name__)

_GREETING_SECONDS = 10.0
# How long between two looks at what the node says of itself; a node with a shorter lease is in more of a hurry.
_CHECK_SECONDS = 10.0
# Enough for a thousand callers with a command each. Not more: who only connects, and says nothing, costs memory until
# the handshake is given up.
_MOST_OPEN_FILES = 8192
# Which a server has by itself.
_RIGHTS = "the ClusterRole system:node"


def run_node(asked: NodeCommand, options: ConnectionOptions, verbosity: int) -> None:
    """Run until a signal comes. Raises PodlifeError when it cannot."""
    connection = load_connection(options)
    with _held(asked.data):
        set_up_logs(verbosity)
        allow_many_open_files(_MOST_OPEN_FILES)
        loop.run(_run(asked, options, connection))


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """The folder is this process's alone; the kernel lets go of it when the process ends, however it does."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be used: {error.strerror}; name another with --data") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"another node's agent has {folder}: end it first, or name another folder with --data"
            ) from None
        yield
    finally:
        os.close(lock)


async def _run(asked: NodeCommand, options: ConnectionOptions, connection: Connection) -> None:
    clock = SystemClock()
    async with connected(options, connection, rights=_RIGHTS) as client:
        await _greet(asked.name, client, connection)
        address = asked.options.node_ip or _own_address(connection.server)
        runtime = make_runtime(asked, address, clock)
        settings = _settings(asked, address, connection)
        agent = Kubelet(client, runtime, settings, clock, machine=HostMachine(asked.data))
        told = {"runtime": runtime.name, "address": address, "data": str(asked.data)}
        log.info("node %s of %s", asked.name, connection.server, extra=told)
        await _until_signal(agent)
    log.info("ended; pods that run go on running")


async def _greet(name: str, client: Client, connection: Connection) -> None:
    """A server that does not know this node, or does not let it be one, is told of at once; one that is not there is
    waited for."""
    try:
        await client.with_timeout(_GREETING_SECONDS).get(NODES, name)
    except NotFoundError:
        log.debug("node %s is new", name)
    except ForbiddenError:
        raise ConfigError(
            f"the credentials of {connection.origin} are not those of node {name} (403): use some of user "
            f"system:node:{name} in group system:nodes, as `podlife apiserver kubeconfig --node {name}` makes them"
        ) from None
    except UnreachableError as error:
        log.warning("%s is not there, which is waited for: %s", connection.server, error)


async def _until_signal(agent: Kubelet) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.run(), name="agent")

        def stop() -> None:
            log.info("told to stop: pods run on")
            running.cancel()

        with loop.stopped_by_signals(stop):
            await asyncio.wait((running,))


def _settings(asked: NodeCommand, address: str, connection: Connection) -> KubeletSettings:
    host, port = asked.listen
    names = tuple(dict.fromkeys((asked.name, socket.gethostname(), address)))
    certificate = CertificateSettings(
        asked.name, asked.data / "pki", names=names, client_authority=connection.certificate_authority
    )
    return KubeletSettings(
        node=NodeSettings(
            asked.name,
            # On the loopback a node is not reached by the machine's name, which may be another address there.
            hostname=address if ip_address(address).is_loopback else socket.gethostname(),
            addresses=(address,),
            # Several nodes of one machine do not count as one.
            labels={"kubernetes.io/hostname": asked.name, **asked.labels},
            taints=asked.taints,
            max_pods=asked.options.max_pods,
            lease_seconds=asked.options.node_lease_duration_seconds,
            renew_seconds=asked.options.node_lease_duration_seconds / 4,
            check_seconds=min(_CHECK_SECONDS, asked.options.node_lease_duration_seconds / 4),
            takes_over=asked.options.take_over,
        ),
        data=asked.data,
        static_pods=asked.options.static_pods,
        check_static_pod=_check_pod,
        endpoint=ServerSettings(certificate, bind=host or address, port=port),
    )


def _check_pod(pod: Object) -> list[str]:
    """What an API server would refuse of it: a static pod is not run here and hidden there."""
    from podlife.apiserver.strategies.core.pod.strategy import PodStrategy

    return [str(each) for each in PodStrategy().validate(pod)]


def make_runtime(asked: NodeCommand, address: str, clock: Clock) -> Runtime:
    # Each is imported where it is wanted: one needs a library that the others do not.
    match asked.options.runtime:
        case "containerd":
            from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings

            socket_path = asked.options.containerd_socket
            return ContainerdRuntime(ContainerdSettings(asked.data / "containerd", socket=socket_path))
        case "sim":
            from podlife.kubelet.hollow.scenario import Scenario
            from podlife.kubelet.hollow.script import script_of
            from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld

            # What pods say of themselves in annotations, and nothing else.
            return SimRuntime(SimWorld(clock, script_of(Scenario()), ips=(address,)))
        case _:
            from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings

            return ProcessRuntime(ProcessSettings(asked.data / "process", ips=(address,)), clock)


def _own_address(server: str) -> str:
    """The address of this machine on the way to the server. Nothing is sent."""
    parts = urlsplit(server)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM)
        family, type_, protocol, _, target = found[0]
        with socket.socket(family, type_, protocol) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
