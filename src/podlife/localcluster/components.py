"""What each part of `podlife up` is, once it has a process of its own: the API server, the controllers, a node, many
simulated nodes, and what stops the pods of a node at the end.

A part is given its order as plain data, tells its supervisor when it is at work, and ends on SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.daemons import event_loop as loop
from podlife.daemons.logs import set_up_logs
from podlife.localcluster.forkserver import Message, Part, TellingPart

__all__ = ["APISERVER", "CONTROLLERS", "FLEET", "NODE", "PARTS", "STOP_PODS", "node_command", "preload"]

APISERVER, CONTROLLERS, NODE, FLEET, STOP_PODS = "apiserver", "controllers", "node", "fleet", "stop-pods"
# The only controllers of the cluster: after a restart they hold their own lease, and need not wait for it to run out.
_IDENTITY = "podlife-up"
_LOOK_SECONDS = 0.02


def preload(runtime: str) -> None:
    """Load what parts need, once for all of them."""
    import podlife.daemons.apiserver
    import podlife.daemons.catalog
    import podlife.daemons.controllers
    import podlife.daemons.pod_gc_controller
    import podlife.nodehealth.prometheus
    import podlife.ownergc
    import podlife.scheduler

    if runtime == "sim":
        import podlife.kubelet.hollow
    else:
        import podlife.daemons.node
        import podlife.kubelet.runtimes.process
        import podlife.kubelet.server.server  # noqa: F401 - loaded for those who are forked


def _run_apiserver(order: Message, telling: TellingPart) -> None:
    from podlife.apiserver.settings import ApiServerSettings
    from podlife.daemons.apiserver import run

    settings = ApiServerSettings(**order | {"data": Path(order["data"]), "names": tuple(order["names"])})
    run(settings, lambda serving: telling.tell({"ready": serving.url}))


def _run_controllers(order: Message, telling: TellingPart) -> None:
    from podlife.cli.commands.controllers.app import ControllersElection, SyncOptions
    from podlife.cli.commands.controllers.nodehealth_options import NodeHealthOptions
    from podlife.client import Client
    from podlife.clock import Clock
    from podlife.controller import ControlPlane
    from podlife.daemons.catalog import choose
    from podlife.daemons.controllers import NAME, Controlling, add_controllers
    from podlife.daemons.service import Options, Service, run_service
    from podlife.events import Recorder

    class Telling(Controlling):
        async def run(self) -> None:
            async with asyncio.TaskGroup() as group:
                ready = group.create_task(_tell_when(lambda: not self.complaint, telling), name="ready")
                await super().run()
                ready.cancel()

    syncs, health = SyncOptions(**order["syncs"]), NodeHealthOptions(**order["health"])

    def make(client: Client, clock: Clock, recorder: Recorder) -> Controlling:
        plane = ControlPlane(client, clock=clock)
        add_controllers(
            plane, choose(order["controllers"]), lambda name: {**syncs.of(name), **health.of(name)}
        )
        return Telling(plane, 5.0)

    options = Options(
        ConnectionOptions(kubeconfig=order["kubeconfig"]),
        ControllersElection(leader_elect_identity=_IDENTITY),
        None,
        order["verbosity"],
    )
    run_service(Service(NAME, "deploy/controllers/rbac.yaml", make), options)


async def _tell_when(is_so: Callable[[], bool], telling: TellingPart) -> None:
    while not is_so():  # noqa: ASYNC110 - caches tell nobody that all of them have synced
        await asyncio.sleep(_LOOK_SECONDS)
    telling.tell({"ready": ""})


def _run_node(order: Message, telling: TellingPart) -> None:
    from podlife.daemons.node import run_node

    run_node(node_command(order), ConnectionOptions(kubeconfig=order["kubeconfig"]), order["verbosity"])


def node_command(order: Message) -> Any:
    from podlife.cli.commands.node import NodeCommand, NodeOptions

    options = NodeOptions(
        name=order["name"],
        runtime=order["runtime"],
        node_ip=order["address"],
        max_pods=order["max_pods"],
        containerd_socket=Path(order["containerd_socket"]),
        node_lease_duration_seconds=order["node_lease_duration_seconds"],
    )
    return NodeCommand(
        name=order["name"],
        data=Path(order["data"]),
        listen=(order["address"], 0),
        labels={},
        taints=(),
        options=options,
    )


def _run_fleet(order: Message, telling: TellingPart) -> None:
    options = ConnectionOptions(kubeconfig=order["kubeconfig"])
    set_up_logs(order["verbosity"])
    if not order["verbosity"]:
        # Of thousands of nodes and pods each would tell what it does.
        logging.getLogger("podlife").setLevel(logging.WARNING)
    loop.run(_fleet(order, options, telling))


async def _fleet(order: Message, options: ConnectionOptions, telling: TellingPart) -> None:
    from podlife.clock import SystemClock
    from podlife.kubelet.hollow import (
        HollowNodes,
        HollowSettings,
        Scenario,
        load_scenario,
    )

    scenario = load_scenario(Path(order["scenario"])) if order["scenario"] else Scenario()
    async with connected(options, load_connection(options)) as client:
        settings = HollowSettings(
            order["nodes"], order["name"], max_pods=order["max_pods"], data=Path(order["data"])
        )
        fleet = HollowNodes(client.named("kubelet"), settings, SystemClock(), scenario)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(fleet.run(), name="fleet")
            orders = group.create_task(_take_orders(fleet, telling, group), name="orders")
            ready = group.create_task(
                _tell_when(lambda: fleet.ready == len(fleet.nodes), telling), name="ready"
            )
            with loop.stopped_by_signals(lambda: _cancel(running)):
                await asyncio.wait((running,))
            orders.cancel()
            ready.cancel()


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _take_orders(fleet: Any, telling: TellingPart, group: asyncio.TaskGroup) -> None:
    """A single node is silenced, or put to work again."""
    telling.line.setblocking(False)
    while data := await asyncio.get_running_loop().sock_recv(telling.line, 4096):
        message = json.loads(data)
        node = fleet.nodes.get(message["node"])
        if node is None:
            continue
        await node.stop(is_machine=message.get("machine", False))
        if message["do"] == "start":
            node.start(group)


def _stop_pods(order: Message, telling: TellingPart) -> None:
    from podlife.localcluster.pod_shutdown import stop_pods

    set_up_logs(order["verbosity"])
    loop.run(stop_pods(node_command(order), order["grace_seconds"], telling))


PARTS: Mapping[str, Part] = {
    APISERVER: _run_apiserver,
    CONTROLLERS: _run_controllers,
    NODE: _run_node,
    FLEET: _run_fleet,
    STOP_PODS: _stop_pods,
}
