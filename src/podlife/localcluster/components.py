"""What each component of a local cluster runs in its process: the API server, the controllers, a node, many simulated
nodes, the shutdown of the pods of a node, and the page.

A component receives its configuration as plain data, reports to its supervisor when it is ready, and exits on SIGTERM.
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
# The only controllers of the cluster: under the same identity they need not wait for their old lease to expire.
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
    """Import the modules of all components before they are forked."""
    nodes = ("podlife.kubelet.hollow",) if runtime == "sim" else _PRELOADED_FOR_NODES
    # By name: a linter removes imports that are not used in the module.
    for module in (*_PRELOADED, *nodes):
        import_module(module)


def _connection(config: Message) -> Connection:
    from podlife.client import Flags, load

    return load(Flags(kubeconfig=config["kubeconfig"]))


def _run_apiserver(config: Message, link: SupervisorLink) -> None:
    from podlife.apiserver.settings import ApiServerSettings
    from podlife.daemons import apiserver

    settings = ApiServerSettings(**config | {"data": Path(config["data"]), "names": tuple(config["names"])})
    apiserver.run_process(settings, lambda serving: link.send({"ready": serving.url}))


def _run_controllers(config: Message, link: SupervisorLink) -> None:
    from podlife.daemons import controllers
    from podlife.daemons.catalog import NODE_LIFECYCLE
    from podlife.daemons.service import ElectionSettings, ServiceSettings
    from podlife.nodehealth import NodeHealthSettings

    health = {NODE_LIFECYCLE: {"settings": NodeHealthSettings(**config["node_health"])}}
    settings = controllers.ControllersSettings(
        ServiceSettings(_connection(config), ElectionSettings(controllers.NAME, identity=_IDENTITY)),
        config["controllers"],
        config["options"] | health,
        stop_seconds=_STOP_SECONDS,
    )
    set_up_logs(config["verbosity"])
    event_loop.run(
        controllers.run(settings, on_ready=lambda: link.send({"ready": ""}), shutdown=stopped_by_signals)
    )


def _run_node(config: Message, link: SupervisorLink) -> None:
    from podlife.daemons import node
    from podlife.daemons.limits import allow_many_open_files

    settings = node.NodeDaemonSettings(
        config["name"],
        _connection(config),
        runtime_settings(config),
        listen=(config["address"], 0),
        address=config["address"],
        max_pods=config["max_pods"],
        lease_seconds=config["node_lease_duration_seconds"],
    )
    set_up_logs(config["verbosity"])
    allow_many_open_files(node.MOST_OPEN_FILES)
    event_loop.run(node.run(settings, shutdown=stopped_by_signals))


def runtime_settings(config: Message) -> RuntimeSettings:
    from podlife.daemons.node import RuntimeSettings

    return RuntimeSettings(Path(config["data"]), config["runtime"], Path(config["containerd_socket"]))


def _run_hollow_nodes(config: Message, link: SupervisorLink) -> None:
    set_up_logs(config["verbosity"])
    if not config["verbosity"]:
        # Thousands of nodes and pods would each log what they do.
        logging.getLogger("podlife").setLevel(logging.WARNING)
    event_loop.run(_hollow_nodes(config, link))


async def _hollow_nodes(config: Message, link: SupervisorLink) -> None:
    from podlife.clock import SystemClock
    from podlife.daemons.connection import connected
    from podlife.kubelet.hollow import HollowNodes, HollowSettings, Scenario, load_scenario

    scenario = load_scenario(Path(config["scenario"])) if config["scenario"] else Scenario()
    async with connected(_connection(config)) as client:
        settings = HollowSettings(
            config["nodes"], config["name"], max_pods=config["max_pods"], data=Path(config["data"])
        )
        fleet = HollowNodes(client.named("kubelet"), settings, SystemClock(), scenario)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(fleet.run(), name="fleet")
            requests = group.create_task(_serve_requests(fleet, link, group), name="requests")
            ready = group.create_task(_report_ready(fleet, link), name="ready")

            def stop() -> None:
                running.cancel()

            with stopped_by_signals(stop):
                await asyncio.wait((running,))
            requests.cancel()
            ready.cancel()


async def _report_ready(fleet: HollowNodes, link: SupervisorLink) -> None:
    while fleet.ready != len(fleet.nodes):  # noqa: ASYNC110 - a fleet does not signal that all nodes are ready
        await asyncio.sleep(_READY_POLL_SECONDS)
    link.send({"ready": ""})


async def _serve_requests(fleet: HollowNodes, link: SupervisorLink, group: asyncio.TaskGroup) -> None:
    """Stop and start single nodes on request."""
    link.socket.setblocking(False)
    while data := await asyncio.get_running_loop().sock_recv(link.socket, 4096):
        message = json.loads(data)
        node = fleet.nodes.get(message["node"])
        if node is None:
            continue
        await node.stop(is_machine=message.get("machine", False))
        if message["do"] == "start":
            node.start(group)


def _run_pod_shutdown(config: Message, link: SupervisorLink) -> None:
    from podlife.localcluster.pod_shutdown import shut_down_node

    set_up_logs(config["verbosity"])
    event_loop.run(shut_down_node(runtime_settings(config), config["address"], config["grace_seconds"], link))


def _run_ui(config: Message, link: SupervisorLink) -> None:
    # Imported here and not preloaded: no other component needs it.
    from podlife.daemons import ui
    from podlife.podgc import Settings
    from podlife.ui.cluster_api import ClusterSettings

    collector = Settings(threshold=config["threshold"], quarantine_seconds=config["quarantine_seconds"])
    flags = shlex.quote(f"--kubeconfig={config['kubeconfig']}")
    settings = ui.UiSettings(
        _connection(config),
        port=config["port"],
        token=config["token"],
        cluster=ClusterSettings(collector, kubectl_flags=flags, audit_log=config["audit_log"]),
    )
    set_up_logs(config["verbosity"])
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
