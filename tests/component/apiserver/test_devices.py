"""resource.k8s.io on the embedded server. Its answers are compared with kube-apiserver's by `tests/real/differential`,
whose steps are played here too: the codes in them are kube-apiserver's."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.wire import Peer
from tests.component.apiserver.requests import ADMINISTRATOR, TABLE, ask
from tests.kit import embedded
from tests.real.differential.areas.devices import DEVICES
from tests.real.differential.steps import fill

Object = dict[str, Any]

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
SLICES = f"{GROUP}/resourceslices"
PEERS = {"admin": ADMINISTRATOR, "nobody": Peer("nobody", ("system:authenticated",))} | {
    name: Peer(f"system:node:{name}", ("system:nodes", "system:authenticated"))
    for name in ("node-a", "node-b")
}
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
DEVICE = {"driver": "gpu.example.com", "pool": "p", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [{"request": "gpu", **DEVICE}]}}


@pytest.fixture
async def handler() -> ApiHandler:
    return await embedded.start()


async def patch_status(handler: ApiHandler, status: Object, peer: Peer = ADMINISTRATOR) -> tuple[int, Any]:
    path = f"{CLAIMS}/c/status"
    return await ask(handler, "PATCH", path, {"status": status}, kind="merge-patch+json", peer=peer)


async def create_claim(handler: ApiHandler, **exactly: Any) -> tuple[int, Any]:
    request = {**REQUEST, "exactly": {"deviceClassName": "gpu", **exactly}}
    return await ask(
        handler, "POST", CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    )


async def test_every_step_has_the_code_that_kube_apiserver_answers_with(handler: ApiHandler) -> None:
    variables = {"ns": DEVICES.namespace}
    wrong = []
    for step in DEVICES.steps:
        kind = step.headers.get("Content-Type", "application/json").removeprefix("application/")
        code, body = await ask(
            handler,
            step.method,
            fill(step.path, variables),
            step.payload(variables),
            kind=kind,
            accept=step.headers.get("Accept", ""),
            peer=PEERS[step.who],
        )
        if code != step.code:
            wrong.append((step.name, step.code, code, body.get("message")))
    assert wrong == []


async def test_what_a_driver_reported_goes_with_the_allocation(handler: ApiHandler) -> None:
    await create_claim(handler)
    reported = [{**DEVICE, "data": {"a": 1}}]
    code, claim = await patch_status(handler, {"allocation": ALLOCATION, "devices": reported})
    assert (code, claim["status"]["devices"][0]["data"]) == (200, {"a": 1})
    code, claim = await patch_status(handler, {"allocation": None})
    assert (code, claim["status"]) == (200, {})


async def test_a_device_that_is_not_allocated_cannot_be_reported_of(handler: ApiHandler) -> None:
    await create_claim(handler)
    code, answer = await patch_status(handler, {"devices": [DEVICE]})
    shown = '{"Driver":"gpu.example.com","Pool":"p","Device":"gpu-0","ShareID":""}'
    assert code == 422
    assert answer["details"]["causes"] == [
        {
            "field": "status.devices[0]",
            "reason": "FieldValueInvalid",
            "message": f"Invalid value: {shown}: must be an allocated device in the claim",
        }
    ]


async def test_administrative_access_needs_the_label_of_the_namespace(handler: ApiHandler) -> None:
    code, answer = await create_claim(handler, adminAccess=True)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.devices.requests[0].adminAccess")
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    await ask(handler, "PATCH", "/api/v1/namespaces/default", label, kind="merge-patch+json")
    assert (await create_claim(handler, adminAccess=True))[0] == 201


async def test_a_taint_without_a_time_has_that_of_the_request(handler: ApiHandler) -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "resourceSliceCount": 1},
        "allNodes": True,
        "devices": [{"name": "a", "taints": [taint]}],
    }
    code, made = await ask(handler, "POST", SLICES, {"metadata": {"name": "s"}, "spec": spec})
    [given] = made["spec"]["devices"][0]["taints"]
    assert (code, given["timeAdded"]) == (201, made["metadata"]["creationTimestamp"])
    _, table = await ask(handler, "GET", SLICES, accept=TABLE)
    assert [row["cells"][:4] for row in table["rows"]] == [["s", "", "gpu.example.com", "p"]]
