"""The scenarios: each acts on a stage, and yields where both sides are compared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from podlife.api.codec import Object
from podlife.client import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from tests.endpoints.stage import LABELS, Stage

Scenario = Callable[[Stage], AsyncIterator[None]]
SCENARIOS: dict[str, Scenario] = {}
SELECTORLESS: Object = {"selector": None, "ports": [{"port": 80}]}
SUBSET: Object = {"addresses": [{"ip": "10.2.0.1"}], "ports": [{"port": 8080}]}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


@scenario
async def life_of_a_pod(stage: Stage) -> AsyncIterator[None]:
    await stage.service(metadata={"labels": {"team": "a"}, "annotations": {"note": "not copied"}})
    yield
    await stage.pod("one", "10.1.0.1", is_ready=False)
    await stage.pod("two", "10.1.0.2", nodeName="node-b")
    await stage.pod("new", nodeName="node-a")
    yield
    await stage.status("one", "10.1.0.1")
    yield
    await stage.status("two", "10.1.0.2", is_ready=False)
    yield
    await stage.delete(PODS, "one")
    yield
    await stage.delete(PODS, "one", grace_seconds=0)
    await stage.delete(PODS, "two", grace_seconds=0)
    yield


@scenario
async def pods_that_end_move_or_change_their_labels(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    for number in range(1, 6):
        await stage.pod(f"pod-{number}", f"10.1.0.{number}")
    yield
    await stage.status("pod-1", "10.1.0.1", is_ready=False, phase="Succeeded")
    await stage.status("pod-2", "10.1.0.2", is_ready=False, phase="Failed")
    await stage.status("pod-3", "10.1.0.33")
    yield
    await stage.patch(PODS, "pod-4", metadata={"labels": {"app": "other"}})
    yield
    await stage.patch(PODS, "pod-4", metadata={"labels": LABELS})
    await stage.patch(PODS, "pod-5", metadata={"annotations": {"note": "of no interest"}})
    yield


@scenario
async def headless_without_ports(stage: Stage) -> AsyncIterator[None]:
    await stage.service(clusterIP="None", ports=[])
    yield
    await stage.pod("one", "10.1.0.1", hostname="first", subdomain="web")
    await stage.pod("two", "10.1.0.2", hostname="second", subdomain="other", is_ready=False)
    yield
    await stage.delete(PODS, "one", grace_seconds=0)
    yield


@scenario
async def addresses_that_are_not_ready_are_published(stage: Stage) -> AsyncIterator[None]:
    await stage.service(publishNotReadyAddresses=True)
    await stage.pod("one", "10.1.0.1", is_ready=False)
    await stage.pod("two", "10.1.0.2")
    await stage.pod("lost", "10.1.0.3", nodeName="missing")
    yield
    await stage.delete(PODS, "one")
    await stage.delete(PODS, "two")
    yield
    await stage.patch(SERVICES, "web", spec={"publishNotReadyAddresses": False})
    yield


@scenario
async def pod_on_a_missing_node(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1", nodeName="missing")
    await stage.pod("two", "10.1.0.2")
    yield


@scenario
async def named_ports(stage: Stage) -> AsyncIterator[None]:
    ports = [
        {"name": "web", "port": 80, "targetPort": "http"},
        {"name": "dns", "port": 53, "targetPort": "query", "protocol": "UDP"},
    ]
    await stage.service(ports=ports)
    both = (
        {"name": "http", "containerPort": 8080},
        {"name": "query", "containerPort": 53, "protocol": "UDP"},
    )
    await stage.pod("both", "10.1.0.1", ports=both)
    await stage.pod("both-again", "10.1.0.2", ports=both, is_ready=False)
    await stage.pod("other-number", "10.1.0.3", ports=({"name": "http", "containerPort": 9090},))
    await stage.pod("other-protocol", "10.1.0.4", ports=({"name": "query", "containerPort": 53},))
    sidecar = {"name": "side", "image": "image", "restartPolicy": "Always", "ports": [both[0]]}
    init = {"name": "init", "image": "image", "ports": [both[1]]}
    await stage.pod("sidecar", "10.1.0.5", ports=(), initContainers=[sidecar, init])
    yield
    await stage.delete(PODS, "other-number", grace_seconds=0)
    await stage.delete(PODS, "sidecar", grace_seconds=0)
    yield
    await stage.patch(SERVICES, "web", spec={"ports": [ports[0]]})
    yield


@scenario
async def several_ports(stage: Stage) -> AsyncIterator[None]:
    ports = [
        {"name": "http", "port": 80, "targetPort": 8080, "appProtocol": "kubernetes.io/h2c"},
        {"name": "https", "port": 443, "targetPort": 8443},
        {"name": "udp", "port": 443, "targetPort": 8443, "protocol": "UDP"},
        {"name": "same", "port": 81},
    ]
    await stage.service(ports=ports)
    await stage.pod("one", "10.1.0.1")
    await stage.pod("two", "10.1.0.2", is_ready=False)
    yield
    await stage.patch(SERVICES, "web", spec={"ports": [{"port": 80, "targetPort": 1234}]})
    yield


@scenario
async def host_network(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    for number, node in enumerate(("node-a", "node-a", "node-b")):
        port = {"name": "http", "containerPort": 8000 + number}
        await stage.pod(f"pod-{number}", "192.168.0.1", hostNetwork=True, nodeName=node, ports=(port,))
    yield
    await stage.status("pod-1", "192.168.0.1", is_ready=False)
    yield
    await stage.patch(SERVICES, "web", spec={"ports": [{"port": 80, "targetPort": "http"}]})
    yield


@scenario
async def zones_and_traffic_distribution(stage: Stage) -> AsyncIterator[None]:
    await stage.service(trafficDistribution="PreferClose")
    for number, node in enumerate(("node-a", "node-b", "node-c")):
        await stage.pod(f"pod-{number}", f"10.1.0.{number + 1}", nodeName=node)
    await stage.pod("not-ready", "10.1.0.9", is_ready=False)
    yield
    await stage.patch(SERVICES, "web", spec={"trafficDistribution": "PreferSameNode"})
    yield
    await stage.status("pod-0", "10.1.0.1", is_ready=False)
    yield
    await stage.patch(SERVICES, "web", spec={"trafficDistribution": None})
    yield
    await stage.status("pod-0", "10.1.0.1")
    yield


@scenario
async def selector_changed(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1")
    await stage.pod("two", "10.1.0.2", labels={"app": "other", "tier": "front"})
    yield
    await stage.patch(SERVICES, "web", spec={"selector": {"app": "other", "tier": "front"}})
    yield
    await stage.patch(SERVICES, "web", spec={"selector": {"tier": "back"}})
    yield


@scenario
async def selector_removed_and_set_again(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1")
    yield
    await stage.patch(SERVICES, "web", spec={"selector": None})
    yield
    await stage.pod("two", "10.1.0.2")
    yield
    await stage.patch(SERVICES, "web", spec={"selector": LABELS})
    yield


@scenario
async def labels_of_the_service(stage: Stage) -> AsyncIterator[None]:
    reserved = {
        "service.kubernetes.io/headless": "odd",
        "kubernetes.io/service-name": "odd",
        "endpointslice.kubernetes.io/managed-by": "odd",
        "endpoints.kubernetes.io/managed-by": "odd",
    }
    await stage.service(metadata={"labels": {"team": "a"} | reserved})
    await stage.service("headless", {"labels": {"team": "a"}}, clusterIP="None")
    await stage.pod("one", "10.1.0.1")
    yield
    await stage.patch(SERVICES, "web", metadata={"labels": {"team": None, "tier": "x"}})
    await stage.patch(SERVICES, "headless", metadata={"labels": {"team": "b"}})
    yield


@scenario
async def service_deleted_and_created_again(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1")
    yield
    await stage.delete(SERVICES, "web")
    yield
    await stage.service()
    yield


@scenario
async def external_name(stage: Stage) -> AsyncIterator[None]:
    await stage.pod("one", "10.1.0.1")
    await stage.service(type="ExternalName", externalName="example.com")
    yield
    await stage.patch(SERVICES, "web", spec={"type": "ClusterIP", "externalName": None})
    yield


@scenario
async def both_families(stage: Stage) -> AsyncIterator[None]:
    await stage.service(ipFamilyPolicy="RequireDualStack")
    await stage.service("single")
    await stage.service("six", ipFamilies=["IPv6"])
    await stage.pod("both", "10.1.0.1", "fd00:1::1")
    await stage.pod("four", "10.1.0.2")
    await stage.pod("six", "fd00:1::2", is_ready=False)
    yield
    await stage.patch(SERVICES, "web", spec={"ipFamilyPolicy": "SingleStack"})
    yield


@scenario
async def slices_of_others(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1")
    for name, manager in (("plain", None), ("managed", "staff")):
        labels = {"kubernetes.io/service-name": "web"}
        if manager:
            labels["endpointslice.kubernetes.io/managed-by"] = manager
        content = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.9.9.9"]}], "ports": [{"port": 1}]}
        await stage.create(ENDPOINT_SLICES, name, metadata={"labels": labels}, **content)
    yield
    await stage.status("one", "10.1.0.1", is_ready=False)
    yield
    await stage.delete(SERVICES, "web")
    yield


@scenario
async def deleted_by_others(stage: Stage) -> AsyncIterator[None]:
    await stage.service()
    await stage.pod("one", "10.1.0.1")
    yield
    for each in await stage.slices_of():
        await stage.delete(ENDPOINT_SLICES, each["metadata"]["name"])
    await stage.delete(ENDPOINTS, "web")
    yield
    for each in await stage.slices_of():
        await stage.patch(ENDPOINT_SLICES, each["metadata"]["name"], endpoints=[{"addresses": ["10.9.9.9"]}])
    yield


@scenario
async def several_slices(stage: Stage) -> AsyncIterator[None]:
    await stage.pods(250)
    await stage.service()
    yield
    await stage.patch(SERVICES, "web", metadata={"labels": {"team": "a"}})
    yield
    await stage.patch(SERVICES, "web", spec={"ports": [{"port": 80, "targetPort": "http"}]})
    yield
    await stage.patch(SERVICES, "web", spec={"selector": {"app": "other"}})
    yield


@scenario
async def more_than_a_thousand_addresses(stage: Stage) -> AsyncIterator[None]:
    await stage.pods(1050)
    await stage.service("mixed")
    await stage.service("ready", publishNotReadyAddresses=True)
    # Two subsets of the same size.
    named = [{"port": 80, "targetPort": "http"}]
    await stage.service("halves", publishNotReadyAddresses=True, ports=named)
    yield


@scenario
async def own_endpoints_mirrored(stage: Stage) -> AsyncIterator[None]:
    await stage.service(**SELECTORLESS)
    kubectl = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "copied"}
    meta = {"labels": {"team": "a"}, "annotations": kubectl}
    await stage.create(ENDPOINTS, "web", metadata=meta, subsets=[SUBSET])
    yield
    not_ready = {"notReadyAddresses": [{"ip": "10.2.0.2", "nodeName": "node-a", "hostname": "two"}]}
    await stage.patch(ENDPOINTS, "web", subsets=[SUBSET | not_ready])
    yield
    await stage.patch(ENDPOINTS, "web", metadata={"labels": {"team": "b"}, "annotations": {"note": None}})
    yield
    await stage.patch(ENDPOINTS, "web", subsets=[SUBSET | {"ports": [{"port": 9090, "name": "other"}]}])
    yield
    await stage.patch(ENDPOINTS, "web", subsets=None)
    yield
    await stage.patch(ENDPOINTS, "web", subsets=[SUBSET])
    yield
    await stage.delete(ENDPOINTS, "web")
    yield


@scenario
async def own_endpoints_of_many_forms(stage: Stage) -> AsyncIterator[None]:
    await stage.service(**SELECTORLESS)
    first = {"name": "http", "port": 80}
    second = {"name": "dns", "port": 53, "protocol": "UDP", "appProtocol": "dns"}
    reference = {"kind": "Pod", "name": "elsewhere", "namespace": "other", "uid": "some-uid"}
    subsets = [
        {"addresses": [{"ip": "10.2.0.2"}, {"ip": "10.2.0.1", "targetRef": reference}], "ports": [first]},
        # The same addresses with another port: one subset in the canonical form.
        {"addresses": [{"ip": "10.2.0.1", "targetRef": reference}, {"ip": "10.2.0.2"}], "ports": [second]},
        {"addresses": [{"ip": "fd00:2::1"}, {"ip": "10.2.0.3"}], "ports": [first]},
        {"notReadyAddresses": [{"ip": "10.2.0.9"}]},
        # Not ready in one, ready in another: not ready.
        {"notReadyAddresses": [{"ip": "10.2.0.3"}], "ports": [first]},
    ]
    await stage.create(ENDPOINTS, "web", subsets=subsets)
    yield
    await stage.patch(ENDPOINTS, "web", subsets=subsets[:1])
    yield


@scenario
async def own_endpoints_that_are_not_mirrored(stage: Stage) -> AsyncIterator[None]:
    skip = {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}
    leader = {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}
    for name, meta in (("skipped", skip), ("leader", leader), ("turned", {})):
        await stage.service(name, **SELECTORLESS)
        await stage.create(ENDPOINTS, name, metadata=meta, subsets=[SUBSET])
    await stage.create(ENDPOINTS, "alone", subsets=[SUBSET])
    yield
    await stage.patch(ENDPOINTS, "turned", metadata=skip)
    await stage.service("alone", **SELECTORLESS)
    await stage.patch(ENDPOINTS, "skipped", metadata={"labels": dict.fromkeys(skip["labels"])})
    yield


@scenario
async def own_endpoints_and_their_service(stage: Stage) -> AsyncIterator[None]:
    for name in ("deleted", "selecting"):
        await stage.service(name, **SELECTORLESS)
        await stage.create(ENDPOINTS, name, subsets=[SUBSET])
    yield
    await stage.delete(SERVICES, "deleted")
    await stage.pod("one", "10.1.0.1")
    await stage.patch(SERVICES, "selecting", spec={"selector": LABELS})
    yield
    await stage.create(ENDPOINTS, "deleted", subsets=[SUBSET])
    yield


@scenario
async def mirrored_slices_changed_by_others(stage: Stage) -> AsyncIterator[None]:
    await stage.service(**SELECTORLESS)
    await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
    yield
    for each in await stage.slices_of():
        await stage.patch(ENDPOINT_SLICES, each["metadata"]["name"], endpoints=[{"addresses": ["10.9.9.9"]}])
    yield
    for each in await stage.slices_of():
        await stage.delete(ENDPOINT_SLICES, each["metadata"]["name"])
    yield
    await stage.delete(ENDPOINTS, "web")
    await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
    yield


@scenario
async def more_own_addresses_than_a_slice_takes(stage: Stage) -> AsyncIterator[None]:
    await stage.service(**SELECTORLESS)
    ready, others = (
        [{"ip": f"10.{family}.{number // 250}.{number % 250 + 1}"} for number in range(count)]
        for family, count in ((2, 900), (3, 200))
    )
    subset = {"addresses": ready, "notReadyAddresses": others, "ports": [{"port": 80}]}
    await stage.create(ENDPOINTS, "web", subsets=[subset])
    yield
