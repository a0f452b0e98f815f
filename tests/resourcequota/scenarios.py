"""The scenarios: each acts on a stage, and yields where the outcome is compared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from podlife.api.codec import Object
from podlife.client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICATION_CONTROLLERS,
    SECRETS,
    SERVICES,
    Ref,
)
from podlife.client.options import WriteOptions
from podlife.resourcequota.controller import RESOURCE_QUOTAS
from tests.resourcequota.stage import LIMIT_RANGES, WIDGETS, Stage

Scenario = Callable[[Stage], AsyncIterator[None]]
SCENARIOS: dict[str, Scenario] = {}
LEASES = Ref("coordination.k8s.io", "v1", "leases", kind="Lease")
RESOURCE_CLAIMS = Ref("resource.k8s.io", "v1", "resourceclaims", kind="ResourceClaim")
SMALL = {"cpu": "100m", "memory": "64Mi"}
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "image"}]},
}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


def container(name: str, requests: Object, limits: Object | None = None, **more: object) -> Object:
    resources = {"requests": requests, "limits": limits or {}}
    return {"name": name, "image": "image", "resources": resources} | more


@scenario
async def number_of_pods(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "2", "count/pods": "10"})
    yield
    for name in ("one", "two", "three"):
        await stage.pod(name)
    await stage.pod("generated-")
    yield
    await stage.delete(PODS, "one")
    yield
    await stage.pod("three")
    yield


@scenario
async def older_names_of_counts(stage: Stage) -> AsyncIterator[None]:
    kinds = ("configmaps", "secrets", "replicationcontrollers", "services", "persistentvolumeclaims")
    await stage.quota(hard=dict.fromkeys(kinds, "1") | {"count/secrets": "5", "resourcequotas": "2"})
    yield
    for name in ("one", "two"):
        await stage.create(CONFIG_MAPS, name)
        await stage.create(SECRETS, name)
        spec = {"replicas": 0, "selector": {"app": "web"}, "template": TEMPLATE}
        await stage.create(REPLICATION_CONTROLLERS, name, spec=spec)
        await stage.service(name)
        await stage.claim(name)
    yield
    for ref in (CONFIG_MAPS, SECRETS, REPLICATION_CONTROLLERS, SERVICES, PERSISTENT_VOLUME_CLAIMS):
        await stage.delete(ref, "one")
    yield


@scenario
async def any_kind_is_counted(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"count/deployments.apps": "1", "count/leases.coordination.k8s.io": "2"})
    yield
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    for name in ("one", "two"):
        await stage.create(DEPLOYMENTS, name, spec=spec)
    await stage.create(LEASES, "one")
    yield
    await stage.delete(DEPLOYMENTS, "one")
    await stage.create(LEASES, "two")
    await stage.create(LEASES, "three")
    yield


@scenario
async def devices_by_class(stage: Stage) -> AsyncIterator[None]:
    devices = ".deviceclass.resource.k8s.io/devices"
    hard = {f"gpu{devices}": "40", f"nic{devices}": "3", "count/resourceclaims.resource.k8s.io": "4"}
    await stage.quota(hard=hard)
    yield

    async def claim(name: str, *requests: Object) -> None:
        given = [{"name": f"r{index}", **each} for index, each in enumerate(requests)]
        await stage.create(RESOURCE_CLAIMS, name, spec={"devices": {"requests": given}})

    gpu, nic = {"deviceClassName": "gpu"}, {"deviceClassName": "nic"}
    await claim("all", {"exactly": gpu | {"allocationMode": "All"}}, {"exactly": nic})
    await claim("too-many", {"exactly": gpu | {"count": 9}})
    options = [{"name": "a", **gpu, "count": 2}, {"name": "b", **gpu, "count": 5}, {"name": "c", **nic}]
    await claim("options", {"firstAvailable": options}, {"exactly": gpu})
    yield
    await claim("another-nic", {"exactly": nic | {"count": 2}})
    await stage.delete(RESOURCE_CLAIMS, "all")
    yield


@scenario
async def custom_resources_are_counted(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"count/widgets.quota.example.com": "1"}, is_complete=False)
    await stage.touch_until_complete("count/widgets.quota.example.com")
    yield
    kind: Object = {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind}
    await stage.create(WIDGETS, "one", **kind)
    await stage.create(WIDGETS, "two", **kind)
    yield
    await stage.delete(WIDGETS, "one", grace_seconds=None)
    yield


@scenario
async def kinds_that_do_not_exist(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"count/things.nowhere.example.com": "1", "pods": "1"}, is_complete=False)
    yield
    await stage.pod("one")
    await stage.pod("two")
    yield


@scenario
async def requests_and_limits(stage: Stage) -> AsyncIterator[None]:
    hard = {"cpu": "500m", "requests.memory": "1Gi", "limits.cpu": "2", "limits.memory": "2Gi"}
    await stage.quota(hard=hard)
    yield
    await stage.pod("nothing")
    await stage.pod("requests", SMALL)
    await stage.pod("fits", {"cpu": "0.3", "memory": "512Mi"}, {"cpu": "1", "memory": "1Gi"})
    await stage.pod("too-much", {"cpu": "201m", "memory": "513Mi"}, {"cpu": "1", "memory": "1Gi"})
    await stage.pod(
        "exactly", {"cpu": "200m", "memory": "536870912"}, {"cpu": "1000m", "memory": "1073741824"}
    )
    yield
    await stage.delete(PODS, "fits")
    yield


@scenario
async def two_containers_miss_different_things(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"limits.cpu": "2", "requests.memory": "1Gi", "requests.ephemeral-storage": "1Gi"})
    containers = [container("b", {"memory": "1Mi"}), container("a", {}, {"cpu": "1"})]
    await stage.pod("one", containers=containers, initContainers=[container("init", {})])
    await stage.pod("whole", resources={"requests": {"memory": "1Mi"}, "limits": {"cpu": "1"}})
    yield


@scenario
async def extended_resources_and_huge_pages(stage: Stage) -> AsyncIterator[None]:
    hard = {"requests.example.com/gpu": "3", "hugepages-2Mi": "8Mi", "requests.hugepages-2Mi": "100Mi"}
    await stage.quota(hard=hard | {"requests.ephemeral-storage": "2Gi", "limits.ephemeral-storage": "3Gi"})
    yield
    gpus = {"example.com/gpu": "2"}
    await stage.pod("gpus", gpus, gpus)
    await stage.pod("more-gpus", gpus, gpus)
    pages = {"hugepages-2Mi": "6Mi", "memory": "1Gi"}
    await stage.pod("pages", pages, pages)
    await stage.pod("more-pages", pages, pages)
    await stage.pod("scratch", {"ephemeral-storage": "1G"}, {"ephemeral-storage": "2Gi"})
    await stage.pod("more-scratch", {"ephemeral-storage": "1G"}, {"ephemeral-storage": "2Gi"})
    yield
    await stage.delete(PODS, "gpus")
    await stage.delete(PODS, "pages")
    yield


@scenario
async def init_and_sidecar_containers(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"requests.cpu": "10", "limits.memory": "10Gi"})
    inits = [
        container("first", {"cpu": "2"}, {"memory": "1Gi"}),
        container("beside", {"cpu": "500m"}, {"memory": "256Mi"}, restartPolicy="Always"),
        container("second", {"cpu": "1"}, {"memory": "3Gi"}),
    ]
    regular = [container(name, {"cpu": "300m"}, {"memory": "512Mi"}) for name in ("main", "other")]
    await stage.pod("one", initContainers=inits, containers=regular)
    whole = {"requests": {"cpu": "4", "memory": "2Gi"}, "limits": {"memory": "3Gi"}}
    await stage.pod("two", initContainers=inits[:2], containers=regular, resources=whole)
    yield


@scenario
async def best_effort_and_others(stage: Stage) -> AsyncIterator[None]:
    await stage.quota("best", hard={"pods": "1"}, scopes=["BestEffort"])
    await stage.quota("other", hard={"pods": "1", "requests.cpu": "1"}, scopes=["NotBestEffort"])
    yield
    for name in ("one", "two"):
        await stage.pod(f"best-{name}")
        await stage.pod(f"other-{name}", SMALL)
    await stage.pod("only-memory", {"memory": "1Mi"})
    yield
    await stage.delete(PODS, "best-one")
    yield


@scenario
async def terminating_and_others(stage: Stage) -> AsyncIterator[None]:
    await stage.quota("ending", hard={"pods": "1"}, scopes=["Terminating"])
    await stage.quota("lasting", hard={"pods": "2"}, scopes=["NotTerminating"])
    yield
    await stage.pod("ending-one", activeDeadlineSeconds=3600)
    await stage.pod("ending-two", activeDeadlineSeconds=3600)
    await stage.pod("lasting-one")
    yield
    await stage.patch(PODS, "lasting-one", spec={"activeDeadlineSeconds": 3600})
    await stage.delete(PODS, "ending-one")
    yield
    await stage.patch(PODS, "lasting-one", spec={"activeDeadlineSeconds": 3600})
    yield


@scenario
async def priority_classes(stage: Stage) -> AsyncIterator[None]:
    for name, operator, values in (
        ("in", "In", ["high", "missing"]),
        ("not-in", "NotIn", ["high"]),
        ("any", "Exists", None),
        ("none", "DoesNotExist", None),
    ):
        # The others are not reached: which of several that are is reported is chance.
        limit = "2" if name == "in" else "5"
        rule: Object = {"scopeName": "PriorityClass", "operator": operator}
        selector = {"matchExpressions": [rule | ({"values": values} if values else {})]}
        await stage.quota(name, hard={"pods": limit}, scopeSelector=selector)
    yield
    for number in range(3):
        await stage.pod(f"high-{number}", priorityClassName="high")
    await stage.pod("low", priorityClassName="low")
    await stage.pod("plain")
    yield
    await stage.delete(PODS, "high-0")
    yield


@scenario
async def affinity_to_other_namespaces(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "1"}, scopes=["CrossNamespacePodAffinity"])
    term: Object = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    weighted = {"weight": 1, "podAffinityTerm": term | {"namespaceSelector": {}}}
    near, far = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    await stage.pod("own", affinity={"podAffinity": {near: [term]}})
    await stage.pod("others", affinity={"podAffinity": {near: [term | {"namespaces": ["a"]}]}})
    await stage.pod("weighted", affinity={"podAntiAffinity": {far: [weighted]}})
    yield


@scenario
async def node_ports_and_load_balancers(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"services": "5", "services.nodeports": "3", "services.loadbalancers": "1"})
    yield
    await stage.service("plain", ports=3)
    await stage.service("ports", "NodePort", ports=2)
    await stage.service("more-ports", "NodePort", ports=2)
    await stage.service("balancer", "LoadBalancer", allocateLoadBalancerNodePorts=False)
    await stage.service("balancer-2", "LoadBalancer", allocateLoadBalancerNodePorts=False)
    yield
    await stage.patch(SERVICES, "plain", spec={"type": "NodePort"})
    await stage.patch(SERVICES, "ports", spec={"type": "ClusterIP"})
    yield
    await stage.patch(SERVICES, "plain", spec={"type": "NodePort"})
    await stage.delete(SERVICES, "balancer")
    yield


@scenario
async def storage_per_class(stage: Stage) -> AsyncIterator[None]:
    gold = "gold.storageclass.storage.k8s.io"
    hard = {
        "requests.storage": "10Gi",
        f"{gold}/requests.storage": "4Gi",
        f"{gold}/persistentvolumeclaims": "2",
    }
    await stage.quota(hard=hard)
    yield
    await stage.claim("plain", "5G", storageClassName="silver")
    await stage.claim("gold-1", "3Gi", storageClassName="gold")
    await stage.claim("gold-2", "2Gi", storageClassName="gold")
    await stage.claim("gold-3", "1Gi", storageClassName="gold")
    await stage.claim("gold-4", "1", storageClassName="gold")
    yield
    await stage.delete(PERSISTENT_VOLUME_CLAIMS, "plain")
    yield


@scenario
async def volume_attributes_classes(stage: Stage) -> AsyncIterator[None]:
    rule = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]}
    selector = {"matchExpressions": [rule]}
    await stage.quota(hard={"persistentvolumeclaims": "1", "requests.storage": "5Gi"}, scopeSelector=selector)
    yield
    for name, kind in (("fast", "fast"), ("fast-2", "fast"), ("slow", "slow")):
        await stage.claim(name, volumeAttributesClassName=kind)
    yield
    await stage.delete(PERSISTENT_VOLUME_CLAIMS, "fast")
    yield


@scenario
async def shrinks_below_what_is_used(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "3", "requests.cpu": "1"})
    for name in ("one", "two", "three"):
        await stage.pod(name, SMALL)
    yield
    await stage.patch(RESOURCE_QUOTAS, "quota", spec={"hard": {"pods": "1", "requests.cpu": "200m"}})
    await stage.await_status()
    await stage.pod("four", SMALL)
    yield
    await stage.delete(PODS, "one")
    await stage.delete(PODS, "two")
    yield
    await stage.pod("four", SMALL)
    await stage.patch(RESOURCE_QUOTAS, "quota", spec={"hard": {"pods": "0"}})
    await stage.await_status()
    yield


@scenario
async def limits_are_added_and_removed(stage: Stage) -> AsyncIterator[None]:
    await stage.pod("early", SMALL)
    await stage.create(SECRETS, "early")
    await stage.quota(hard={"pods": "5"})
    yield
    hard = {"pods": None, "requests.cpu": "1", "secrets": "3", "requests.memory": "1Gi"}
    await stage.patch(RESOURCE_QUOTAS, "quota", spec={"hard": hard})
    await stage.await_status()
    yield
    await stage.pod("late", SMALL)
    await stage.create(SECRETS, "late")
    yield
    await stage.delete(RESOURCE_QUOTAS, "quota")
    yield
    await stage.pod("free", {"cpu": "100"})
    yield


@scenario
async def pods_that_end_are_not_charged(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "2", "count/pods": "3", "requests.cpu": "1"})
    for name in ("one", "two"):
        await stage.pod(name, SMALL)
    yield
    await stage.end("one", "Succeeded")
    await stage.end("two", "Failed")
    yield
    await stage.pod("three", SMALL)
    await stage.pod("four", SMALL)
    yield


@scenario
async def pods_being_deleted_are_charged(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "1"})
    await stage.pod("one", metadata={"finalizers": ["example.com/hold"]})
    yield
    await stage.delete(PODS, "one", grace_seconds=600)
    await stage.pod("two")
    yield
    await stage.patch(PODS, "one", metadata={"finalizers": None})
    yield


@scenario
async def several_quotas(stage: Stage) -> AsyncIterator[None]:
    await stage.quota("a", hard={"pods": "3", "requests.cpu": "10"})
    await stage.quota("b", hard={"pods": "1"})
    await stage.quota("c", hard={"configmaps": "1"})
    yield
    await stage.pod("one", SMALL)
    await stage.pod("two", SMALL)
    yield


@scenario
async def quotas_of_quotas(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"resourcequotas": "2", "count/limitranges": "0"})
    await stage.quota("second", hard={"pods": "1"})
    await stage.create(RESOURCE_QUOTAS, "third", spec={"hard": {"pods": "1"}})
    await stage.create(LIMIT_RANGES, "none", spec={"limits": []})
    yield


@scenario
async def dry_runs_and_updates_charge_nothing(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "1", "configmaps": "1"})
    yield
    dry = WriteOptions(dry_run=True)
    for name in ("one", "two"):
        spec = {"containers": [container("main", {})]}
        await stage.create(PODS, name, options=dry, spec=spec)
    await stage.create(CONFIG_MAPS, "one")
    await stage.create(CONFIG_MAPS, "two", options=dry)
    await stage.patch(CONFIG_MAPS, "one", data={"key": "value"})
    yield


@scenario
async def what_is_invalid_or_exists_is_not_charged(stage: Stage) -> AsyncIterator[None]:
    await stage.quota(hard={"pods": "3"})
    await stage.pod("one")
    await stage.pod("one")
    await stage.pod("Invalid_Name")
    await stage.pod("two")
    # Theirs has charged for the second `one` until it counts again.
    await stage.delete(PODS, "two")
    yield


@scenario
async def defaults_of_a_limit_range(stage: Stage) -> AsyncIterator[None]:
    limits = {"default": {"cpu": "500m", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m"}}
    await stage.limit_range({"type": "Container", "max": {"memory": "1Gi", "cpu": "1"}} | limits)
    await stage.quota(hard={"requests.cpu": "1", "limits.memory": "2Gi"})
    await stage.pod("nothing")
    await stage.pod("some", {"cpu": "200m"}, {"memory": "1Gi"}, initContainers=[container("init", {})])
    await stage.pod("refused", {"cpu": "600m"})
    yield


@scenario
async def bounds_of_containers(stage: Stage) -> AsyncIterator[None]:
    await stage.limit_range(
        {
            "type": "Container",
            "min": {"cpu": "100m", "memory": "10Mi"},
            "max": {"cpu": "2", "memory": "1Gi"},
            "maxLimitRequestRatio": {"cpu": "4"},
        }
    )
    await stage.pod("defaults")
    await stage.pod("small", {"cpu": "50m"})
    await stage.pod("large", {"memory": "1Gi", "cpu": "2"}, {"memory": "2Gi", "cpu": "3"})
    await stage.pod("stretched", {"cpu": "100m"}, {"cpu": "450m"})
    await stage.pod("zero", {"cpu": "0"}, {"cpu": "0"})
    await stage.pod("init", SMALL, SMALL, initContainers=[container("init", {"cpu": "3"}, {"cpu": "3"})])
    yield


@scenario
async def bounds_of_pods_and_claims(stage: Stage) -> AsyncIterator[None]:
    pods = {
        "min": {"cpu": "200m"},
        "max": {"cpu": "1", "example.com/gpu": "1"},
        "maxLimitRequestRatio": {"cpu": "2"},
    }
    claims = {"min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}
    await stage.limit_range({"type": "Pod"} | pods, {"type": "PersistentVolumeClaim"} | claims)
    gpu = {"example.com/gpu": "1"}
    await stage.pod("nothing")
    await stage.pod("fits", {"cpu": "300m"} | gpu, {"cpu": "600m"} | gpu)
    two = [container(name, {"cpu": "600m"} | gpu, {"cpu": "600m"} | gpu) for name in ("a", "b")]
    await stage.pod("too-much", containers=two)
    sidecar = container("side", {"cpu": "100m"}, {"cpu": "900m"}, restartPolicy="Always")
    main = container("main", {"cpu": "200m"} | gpu, {"cpu": "200m"} | gpu)
    await stage.pod("sidecar", containers=[main], initContainers=[sidecar])
    for size in ("1Gi", "5Gi", "1Mi", "6Gi"):
        await stage.claim(f"claim-{size.lower()}", size)
    yield


@scenario
async def resized_pods(stage: Stage) -> AsyncIterator[None]:
    await stage.limit_range({"type": "Container", "max": {"memory": "1Gi"}})
    await stage.quota(hard={"requests.cpu": "1", "limits.memory": "2Gi"})
    await stage.pod("one", SMALL, {"memory": "256Mi"})
    yield

    async def resize(**sides: Object) -> None:
        change = {"containers": [{"name": "main", "resources": sides, "image": "image"}]}
        await stage.patch(PODS, "one", subresource="resize", spec=change)

    await resize(requests=SMALL | {"cpu": "900m"}, limits={"memory": "256Mi"})
    await resize(requests=SMALL | {"cpu": "1100m"}, limits={"memory": "256Mi"})
    await resize(requests=SMALL, limits={"memory": "2Gi"})
    yield


@scenario
async def invalid_quotas(stage: Stage) -> AsyncIterator[None]:
    for number, spec in enumerate(
        (
            {"hard": {"pods": "-1"}},
            {"hard": {"pods": "1.5"}},
            {"hard": {"storage": "1"}},
            {"hard": {"unknown": "1"}},
            {"hard": {"a b": "1"}},
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]},
            {"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]},
            {"hard": {"pods": "1"}, "scopes": ["Other"]},
            {"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]},
            {
                "hard": {"pods": "1"},
                "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]},
            },
            {
                "hard": {"pods": "1"},
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "BestEffort", "operator": "In", "values": ["x"]}]
                },
            },
            {
                "hard": {"pods": "1"},
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "Exists", "values": ["x"]}
                    ]
                },
            },
            {
                "hard": {"pods": "1"},
                "scopeSelector": {"matchExpressions": [{"scopeName": "Other", "operator": "Wrong"}]},
            },
            {"hard": {"requests.cpu": "2", "limits.cpu": "1", "cpu": "1.0005"}},
        )
    ):
        await stage.create(RESOURCE_QUOTAS, f"quota-{number}", spec=spec)
    await stage.patch(RESOURCE_QUOTAS, "quota-13", spec={"scopes": ["BestEffort"]})
    await stage.patch(RESOURCE_QUOTAS, "quota-13", spec={"hard": None})
    yield


@scenario
async def invalid_limit_ranges(stage: Stage) -> AsyncIterator[None]:
    for number, limits in enumerate(
        (
            [{"type": "Container"}, {"type": "Container"}],
            [{"type": "Other"}],
            [{"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}],
            [{"type": "PersistentVolumeClaim"}],
            [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}],
            [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}}],
            [{"type": "Container", "min": {"cpu": "2"}, "default": {"cpu": "1"}}],
            [{"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}],
            [{"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}}],
            [{"type": "Container", "max": {"pods": "2"}}],
            [
                {
                    "type": "Container",
                    "default": {"example.com/a": "1"},
                    "defaultRequest": {"example.com/a": "2"},
                }
            ],
            [{"type": "Pod", "min": {"cpu": "100m"}, "max": {"cpu": "0.5", "memory": "1024Mi"}}],
            [],
        )
    ):
        await stage.create(LIMIT_RANGES, f"range-{number}", spec={"limits": limits})
    yield
