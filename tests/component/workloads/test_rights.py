"""The rights in `deploy/controllers` beside what the controllers ask for in all their scenarios: none is missing, and
none is too much.

Each controller has a client of its own here, and what it asks of the embedded server is noted as RBAC sees it. That a
server which enforces them is content, and that it is not without any of them, is for `tests/real`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import pytest
import yaml

from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from podlife.client import Ref
from podlife.controller import ControlPlane
from podlife.daemons.catalog import OWNER_GC, TOKENS_CONTROLLER, known_controllers
from podlife.ownergc import OwnerGarbageCollector
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads import CONTROLLERS
from tests.kit.embedded import connect, start
from tests.kit.real_parts import ROOT
from tests.workloads.runs import NEEDED, EmbeddedQuota, at_work, observing, play_all
from tests.workloads.scenario import all_scenarios

MANIFESTS = ROOT / "deploy" / "controllers"
Right = tuple[str, str]
"""A verb, and a resource with its group."""

EVENTS = frozenset({("create", "events"), ("patch", "events")})
"""Of all of them; one tells nothing."""
ASKED_FOR_ELSEWHERE = frozenset(
    {
        # A revision whose name is taken is looked at: a collision of hashes, or an answer that was lost.
        ("get", "controllerrevisions.apps"),
        # Asked by a server with OwnerReferencesPermissionEnforcement, which `tests/real` starts.
        ("delete", "persistentvolumeclaims"),
        ("update", "cronjobs.batch/finalizers"),
        ("update", "daemonsets.apps/finalizers"),
        ("update", "deployments.apps/finalizers"),
        ("update", "jobs.batch/finalizers"),
        ("update", "pods/finalizers"),
        ("update", "replicasets.apps/finalizers"),
        ("update", "replicationcontrollers/finalizers"),
        ("update", "statefulsets.apps/finalizers"),
    }
)

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def right_of(request: Request) -> Right | None:
    """What RBAC would be asked about the request; nothing about paths that are no resource's."""
    parts = request.path.strip("/").split("/")
    if parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return None
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = Ref(group, "", rest[0])
    name, subresource = ([*rest[1:], "", ""])[:2]
    verb = _VERBS.get(request.method) or ("get" if name else "watch" if "watch" in request.query else "list")
    if subresource == "scale":
        # Asked of owners of any kind: a rule cannot name them.
        return verb, "*.*/scale"
    return verb, f"{resource}/{subresource}" if subresource else str(resource)


def rights_of(role: dict[str, Any]) -> frozenset[Right]:
    return frozenset(
        (verb, "/".join([str(Ref(group, "", resource.partition("/")[0])), *resource.split("/")[1:]]))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


@cache
def granted() -> dict[str, frozenset[Right]]:
    """By the name of the controller: what the roles allow it, that of all of them included."""
    documents = yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text())
    roles = {each["metadata"]["name"]: each for each in documents if each["kind"] == "ClusterRole"}
    shared = rights_of(roles.pop("podlife-controllers"))
    return {name.partition(":")[2]: rights_of(role) | shared for name, role in roles.items()}


async def asked_for(controller: str) -> frozenset[Right]:
    """All that the controller asks of the server in the scenarios of its workload."""
    workload = next(name for name, needed in NEEDED.items() if controller in needed and name != "ownergc")
    # Others need these as well.
    own = controller.removesuffix("-controller")
    workload = own if own in NEEDED else workload
    server, quota, seen = await start(), EmbeddedQuota(), set[Right]()

    async def note(request: Request, to_server: Handler) -> Response:
        if (right := right_of(request)) is not None:
            seen.add(right)
        return await quota(request, to_server)

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(at_work(CustomResourceDefinitionController(server.registry).run))
        client = await stack.enter_async_context(connect(server, quota))
        for name in (*NEEDED[workload], "garbage-collector-controller"):
            line = await stack.enter_async_context(connect(server, note if name == controller else quota))
            plane = ControlPlane(line, clock=LoopClock())
            plane.add(CONTROLLERS[name](plane) if name in CONTROLLERS else OwnerGarbageCollector(plane))
            await stack.enter_async_context(at_work(plane.run))
        cluster = await stack.enter_async_context(
            observing(client, quota, clock=LoopClock(), quiet_seconds=5)
        )
        scenarios = [each for each in all_scenarios() if each.workload == workload]
        outcomes = await play_all(cluster, scenarios, {})
        assert not [outcome for outcome in outcomes.values() if outcome.error is not None]
        await asyncio.sleep(10)
    return frozenset(seen)


def test_the_pod_collector_may_do_what_it_may_by_itself() -> None:
    alone = yaml.safe_load_all((ROOT / "deploy" / "gc" / "rbac.yaml").read_text())
    [role] = [each for each in alone if each["kind"] == "ClusterRole"]
    assert granted()["pod-garbage-collector-controller"] == rights_of(role)


def test_every_controller_has_a_role() -> None:
    # The collector of owned objects, which has to see everything, has its own file; tokens in secrets need a key, and
    # a role that reads secrets.
    assert granted().keys() == {each.name for each in known_controllers()} - {OWNER_GC, TOKENS_CONTROLLER}


@pytest.mark.parametrize("controller", CONTROLLERS)
@virtual_time
async def test_a_controller_may_do_what_it_asks_for_and_nothing_else(controller: str) -> None:
    asked, allowed = await asked_for(controller), granted()[controller]
    assert asked - allowed == set(), "missing"
    # A list is for servers that do not stream it, and to see whether one has gone back in time.
    lists = {("list", resource) for verb, resource in allowed if verb == "watch"}
    assert allowed - asked - lists - ASKED_FOR_ELSEWHERE == EVENTS - asked, "too much"
    assert lists <= allowed
