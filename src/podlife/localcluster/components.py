"""What each component of a local cluster runs in its process: the API server, the controllers, a node, many simulated
nodes, the shutdown of the pods of a node, and the page.

A component receives its order as plain data, reports to its supervisor when it is ready, and ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from podlife.daemons import event_loop
from podlife.daemons.event_loop import stopped_by_signals
from podlife.daemons.logs import set_up_logs
from podlife.localcluster.forkserver import ComponentMain, Message, SupervisorLink

if TYPE_CHECKING:
    from podlife.client import Connection
    from podlife.daemons.node import RuntimeSettings
    from podlife.kubelet.hollow import HollowNodes

APISERVER, CONTROLLERS, NODE = "apiserver", "controllers", "node"
HOLLOW_NODES, POD_SHUTDOWN, UI = "hollow-nodes", "pod-shutdown", "ui"
# The only controllers of the cluster: after a restart they hold their own lease, and need not wait for it to expire.
_IDENTITY = "podlife-up"
_STOP_SECONDS = 5.0
_READY_POLL_SECONDS = 0.02


# What components need; those of nodes depend on the runtime.
_PRELOADED = (
    "podlife.daemons.apiserver",
    "podlife.daemons.controllers",
    "podlife.daemons.gc",
    "podlife.nodehealth.prometheus",
    "podlife.ownergc",
    "podlife.scheduler",
)
_PRELOADED_FOR_NODES = (
    "podlife.daemons.node",
    "podlife.kubelet.runtimes.process",
    "podlife.kubelet.server.server",
)


def preload(runtime: str) -> None:
    """Import what components need, once for all of them."""
    nodes = ("podlife.kubelet.hollow",) if runtime == "sim" else _PRELOADED_FOR_NODES
    # By name: a linter removes imports that are not used in the module.
    for module in (*_PRELOADED, *nodes):
        import_module(module)


def _connection(order: Message) -> Connection:
    from podlife.client import Flags, load

    return load(Flags(kubeconfig=order["kubeconfig"]))


def _run_apiserver(order: Message, link: SupervisorLink) -> None:
    from podlife.apiserver.settings import ApiServerSettings
    from podlife.daemons import apiserver

    settings = ApiServerSettings(**order | {"data": Path(order["data"]), "names": tuple(order["names"])})
    apiserver.run_process(settings, lambda serving: link.send({"ready": serving.url}))


def _run_controllers(order: Message, link: SupervisorLink) -> None:
    from podlife.daemons import controllers
    from podlife.daemons.catalog import NODE_LIFECYCLE
    from podlife.daemons.service import ElectionSettings, ServiceSettings
    from podlife.nodehealth import NodeHealthSettings

    health = {NODE_LIFECYCLE: {"settings": NodeHealthSettings(**order["node_health"])}}
    settings = controllers.ControllersSettings(
        ServiceSettings(_connection(order), ElectionSettings(controllers.NAME, identity=_IDENTITY)),
        order["controllers"],
        order["options"] | health,
        stop_seconds=_STOP_SECONDS,
    )
    set_up_logs(order["verbosity"])
    event_loop.run(
        controllers.run(settings, on_ready=lambda: link.send({"ready": ""}), shutdown=stopped_by_signals)
    )


def _run_node(order: Message, link: SupervisorLink) -> None:
    from podlife.daemons import node
    from podlife.daemons.limits import allow_many_open_files

    settings = node.NodeDaemonSettings(
        order["name"],
        _connection(order),
        runtime_settings(order),
        listen=(order["address"], 0),
        address=order["address"],
        max_pods=order["max_pods"],
        lease_seconds=order["node_lease_duration_seconds"],
    )
    set_up_logs(order["verbosity"])
    allow_many_open_files(node.MOST_OPEN_FILES)
    event_loop.run(node.run(settings, shutdown=stopped_by_signals))


def runtime_settings(order: Message) -> RuntimeSettings:
    """Of the node that an order is about."""
    from podlife.daemons.node import RuntimeSettings

    return RuntimeSettings(Path(order["data"]), order["runtime"], Path(order["containerd_socket"]))


def _run_hollow_nodes(order: Message, link: SupervisorLink) -> None:
    set_up_logs(order["verbosity"])
    if not order["verbosity"]:
        # Thousands of nodes and pods would each log what they do.
        logging.getLogger("podlife").setLevel(logging.WARNING)
    event_loop.run(_hollow_nodes(order, link))


async def _hollow_nodes(order: Message, link: SupervisorLink) -> None:
    from podlife.clock import SystemClock
    from podlife.daemons.connection import connected
    from podlife.kubelet.hollow import HollowNodes, HollowSettings, Scenario, load_scenario

    scenario = load_scenario(Path(order["scenario"])) if order["scenario"] else Scenario()
    async with connected(_connection(order)) as client:
        settings = HollowSettings(
            order["nodes"], order["name"], max_pods=order["max_pods"], data=Path(order["data"])
        )
        fleet = HollowNodes(client.named("kubelet"), settings, SystemClock(), scenario)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(fleet.run(), name="fleet")
            orders = group.create_task(_take_orders(fleet, link, group), name="orders")
            ready = group.create_task(_report_ready(fleet, link), name="ready")

            def stop() -> None:
                running.cancel()

            with stopped_by_signals(stop):
                await asyncio.wait((running,))
            orders.cancel()
            ready.cancel()


async def _report_ready(fleet: HollowNodes, link: SupervisorLink) -> None:
    while fleet.ready != len(fleet.nodes):  # noqa: ASYNC110 - a fleet does not signal that all nodes are ready
        await asyncio.sleep(_READY_POLL_SECONDS)
    link.send({"ready": ""})


async def _take_orders(fleet: HollowNodes, link: SupervisorLink, group: asyncio.TaskGroup) -> None:
    """Stop and start single nodes."""
    link.socket.setblocking(False)
    while data := await asyncio.get_running_loop().sock_recv(link.socket, 4096):
        message = json.loads(data)
        node = fleet.nodes.get(message["node"])
        if node is None:
            continue
        await node.stop(is_machine=message.get("machine", False))
        if message["do"] == "start":
            node.start(group)


def _run_pod_shutdown(order: Message, link: SupervisorLink) -> None:
    from podlife.localcluster.pod_shutdown import shut_down_node

    set_up_logs(order["verbosity"])
    event_loop.run(shut_down_node(runtime_settings(order), order["address"], order["grace_seconds"], link))


def _run_ui(order: Message, link: SupervisorLink) -> None:
    # Imported here and not preloaded: no other component needs it.
    from podlife.daemons import ui
    from podlife.podgc import Settings
    from podlife.ui.cluster_api import ClusterSettings

    collector = Settings(threshold=order["threshold"], quarantine_seconds=order["quarantine_seconds"])
    flags = shlex.quote(f"--kubeconfig={order['kubeconfig']}")
    settings = ui.UiSettings(
        _connection(order),
        port=order["port"],
        token=order["token"],
        cluster=ClusterSettings(collector, kubectl_flags=flags),
    )
    set_up_logs(order["verbosity"])
    event_loop.run(
        ui.run(settings, on_ready=lambda url: link.send({"ready": url}), shutdown=stopped_by_signals)
    )


COMPONENTS: Mapping[str, ComponentMain] = {
    APISERVER: _run_apiserver,
    CONTROLLERS: _run_controllers,
    NODE: _run_node,
    HOLLOW_NODES: _run_hollow_nodes,
    POD_SHUTDOWN: _run_pod_shutdown,
    UI: _run_ui,
}
