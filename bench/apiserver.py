"""The embedded API server beside kube-apiserver with etcd: the same requests to both, one after the other."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.real_parts import Server, kube_apiserver, podlife_apiserver

from bench.load import Load, Rate
from bench.report import Goal, Table

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/bench.podlife.dev/v1/namespaces/default/widgets"
# An API server serves a definition a moment after it has stored it.
_SECONDS_TO_SERVE = 30.0


@dataclass
class Figures:
    """What was measured of one server."""

    start_seconds: float = 0.0
    empty_mb: float = 0.0
    at_4000_mb: float = 0.0
    rates: dict[str, Rate] = field(default_factory=dict)
    list_seconds: float = 0.0
    list_mb: float = 0.0
    fan_out: float = 0.0
    collection_seconds: float = 0.0
    collection_left: int = 0


@dataclass(frozen=True)
class Size:
    """How much is done; `quick` is for trying the benchmark itself."""

    pods: int = 36_000
    patches: int = 6_000
    deletes: int = 6_000
    watchers: int = 100
    watched: int = 1_000
    widgets: int = 4_000

    @classmethod
    def quick(cls) -> Size:
        return cls(pods=6_000, patches=2_000, deletes=2_000, watched=300, widgets=2_000)


def run(folder: Path, size: Size) -> Table:
    theirs = measure(kube_apiserver, folder / "kube-apiserver", size)
    ours = measure(podlife_apiserver, folder / "podlife", size)
    return _compare(theirs, ours, size)


def measure(start: Callable[[Path], AbstractContextManager[Server]], folder: Path, size: Size) -> Figures:
    """Start the server twice (the first start makes keys and warms the disk's cache), then load it."""
    with start(folder):
        pass
    figures = Figures()
    began = time.perf_counter()
    with start(folder) as server:
        figures.start_seconds = time.perf_counter() - began
        asyncio.run(_load(server, figures, size))
    return figures


async def _load(server: Server, figures: Figures, size: Size) -> None:
    await asyncio.sleep(2)  # what a server does after its start is not what is measured
    figures.empty_mb = _resident_mb(server.pid)
    await _authorize(server)
    async with Load(server.host, server.port, server.ca_file, server.tokens["nobody"]) as load:
        first = min(4_000, size.pods)
        rate = await load.run(creates(load, 0, first))
        figures.rates["create"] = rate
        figures.at_4000_mb = _resident_mb(server.pid)
        await _measure_writes(load, figures, size)
        await _measure_custom_resources(load, figures, size)
        await _measure_fan_out(load, figures, size)
        await load.run(creates(load, first, size.pods))
        await _measure_list(load, figures)
        await _measure_collection(load, figures)


async def _authorize(server: Server) -> None:
    """The user of the load has its rights by RBAC; members of system:masters would not be asked."""
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "bench"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "nobody"}],
    }
    async with Load(server.host, server.port, server.ca_file, server.tokens["admin"]) as load:
        path = f"/apis/{group}/v1/clusterrolebindings"
        await load.one(load.request("POST", path, json.dumps(binding).encode()))


def _pod(name: str) -> bytes:
    """About what pods in real clusters are like: two containers, probes, volumes, environment."""
    container = {
        "image": "registry.example.com/team/service:v1.28.3",
        "args": ["--config=/etc/service/config.yaml", "--log-format=json", "--metrics-addr=:9090"],
        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}],
        "env": [{"name": f"SETTING_{n}", "value": f"value-of-setting-{n}"} for n in range(12)],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "initialDelaySeconds": 10},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/service"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    sidecar = {key: value for key, value in container.items() if key != "ports"}
    return _json(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"app": "service", "tier": "backend", "pod-template-hash": "7d9c5b8f6d"},
                "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            },
            "spec": {
                "nodeName": "node-1",
                "containers": [{"name": "service", **container}, {"name": "sidecar", **sidecar}],
                "volumes": [
                    {"name": "config", "configMap": {"name": "service"}},
                    {"name": "tmp", "emptyDir": {}},
                ],
            },
        }
    )


def _json(value: object) -> bytes:
    """Without spaces, as Go's clients write it."""
    return json.dumps(value, separators=(",", ":")).encode()


def creates(load: Load, start: int, end: int) -> Iterator[bytes]:
    return (load.request("POST", PODS, _pod(f"pod-{n:06d}")) for n in range(start, end))


def _status(n: int, phase: str = "Running") -> bytes:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    address = f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
    return _json({"status": {"phase": phase, "podIP": address, "conditions": [condition]}})


async def _measure_writes(load: Load, figures: Figures, size: Size) -> None:
    span = min(4_000, size.pods)
    patches = (
        load.request("PATCH", f"{PODS}/pod-{n % span:06d}/status", _status(n), MERGE)
        for n in range(size.patches)
    )
    figures.rates["status patch"] = await load.run(patches)
    body = b'{"gracePeriodSeconds":0}'
    extra = [f"extra-{n:06d}" for n in range(size.deletes)]
    await load.run(load.request("POST", PODS, _pod(name)) for name in extra)
    figures.rates["delete"] = await load.run(load.request("DELETE", f"{PODS}/{name}", body) for name in extra)


async def _measure_custom_resources(load: Load, figures: Figures, size: Size) -> None:
    await load.one(load.request("POST", DEFINITIONS, _definition()))
    async with asyncio.timeout(_SECONDS_TO_SERVE):
        while b'"WidgetList"' not in await load.text(load.request("GET", WIDGETS)):
            await asyncio.sleep(0.05)
    names = [f"widget-{n:06d}" for n in range(size.widgets)]
    created = await load.run(load.request("POST", WIDGETS, _widget(name)) for name in names)
    patches = (load.request("PATCH", f"{WIDGETS}/{name}/status", _WIDGET_STATUS, MERGE) for name in names)
    figures.rates["custom resource: create"] = created
    figures.rates["custom resource: status patch"] = await load.run(patches)
    deletes = (load.request("DELETE", f"{WIDGETS}/{name}") for name in names)
    figures.rates["custom resource: delete"] = await load.run(deletes)


def _definition() -> bytes:
    """What operators' definitions are like: defaults, bounds, a pattern, a rule, a list with keys, a status."""
    text = {"type": "string", "maxLength": 64}
    part = {"name": text, "size": {"type": "integer", "minimum": 0, "default": 1}}
    parts = {
        "type": "array",
        "maxItems": 16,
        "items": {"type": "object", "properties": part, "required": ["name"]},
    }
    parts |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    replicas = {"type": "integer", "minimum": 0, "maximum": 100, "default": 1}
    spec = {
        "type": "object",
        "properties": {
            "replicas": replicas,
            "image": {**text, "pattern": "^[a-z0-9./:-]+$"},
            "labels": {"type": "object", "additionalProperties": text, "maxProperties": 16},
            "parts": parts,
        },
        "x-kubernetes-validations": [{"rule": "size(self.parts) <= 10 || self.replicas > 0"}],
    }
    condition = {"type": "object", "properties": {"type": text, "status": text}}
    status = {"phase": text, "conditions": {"type": "array", "items": condition}}
    properties = {"spec": spec, "status": {"type": "object", "properties": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return _json(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.bench.podlife.dev"},
            "spec": {
                "group": "bench.podlife.dev",
                "scope": "Namespaced",
                "names": names,
                "versions": [version],
            },
        }
    )


def _widget(name: str) -> bytes:
    spec = {
        "replicas": 3,
        "image": "registry.example.com/team/service:v1.28.3",
        "labels": {"app": "service", "tier": "backend"},
        "parts": [{"name": f"part-{n}"} for n in range(8)],
    }
    metadata = {"name": name, "labels": {"app": "service"}}
    return _json({"apiVersion": "bench.podlife.dev/v1", "kind": "Widget", "metadata": metadata, "spec": spec})


_WIDGET_STATUS = _json({"status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "True"}]}})


async def _measure_fan_out(load: Load, figures: Figures, size: Size) -> None:
    wanted = size.watched * size.watchers
    seen = 0
    done = asyncio.Event()

    def on_events(count: int) -> None:
        nonlocal seen
        seen += count
        if seen >= wanted:
            done.set()

    revision = await _revision(load)
    await load.watch(f"{PODS}?watch=1&resourceVersion={revision}", size.watchers, on_events)
    began = time.perf_counter()
    span = min(4_000, size.pods)
    await load.run(
        load.request("PATCH", f"{PODS}/pod-{n % span:06d}/status", _status(n + 70_000), MERGE)
        for n in range(size.watched)
    )
    await asyncio.wait_for(done.wait(), 120)
    figures.fan_out = wanted / (time.perf_counter() - began)
    await load.end_watches()


async def _revision(load: Load) -> int:
    """Where a watch starts that is to see only what comes: the revision of a list."""
    text = await load.text(load.request("GET", f"{PODS}?limit=1"))
    found = re.search(rb'"resourceVersion":"(\d+)"', text)
    assert found is not None
    return int(found.group(1))


async def _measure_list(load: Load, figures: Figures) -> None:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        answer = await load.read(load.request("GET", "/api/v1/pods"))
        times.append(time.perf_counter() - began)
        figures.list_mb = answer.size / 1e6
    figures.list_seconds = min(times)


async def _measure_collection(load: Load, figures: Figures) -> None:
    began = time.perf_counter()
    await load.one(load.request("DELETE", PODS, b'{"gracePeriodSeconds":0}'))
    figures.collection_seconds = time.perf_counter() - began
    left = await load.text(load.request("GET", f"{PODS}?limit=1"))
    figures.collection_left = left.count(b'"uid"')


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no resident size for process {pid}")


def _compare(theirs: Figures, ours: Figures, size: Size) -> Table:
    table = Table("API server: kube-apiserver v1.36 with etcd, and podlife", ("kube-apiserver", "podlife"))
    for name, rate in theirs.rates.items():
        mine = ours.rates[name]
        table.add(f"{name}/s", rate.per_second, mine.per_second, Goal.at_least(2.0))
        table.note(
            f"{name}: p99 {rate.p99_ms:.1f} ms and {mine.p99_ms:.1f} ms, failed {rate.failed} and {mine.failed}"
        )
    table.add(f"list {size.pods} pods, s", theirs.list_seconds, ours.list_seconds, Goal.at_most(1 / 10))
    table.note(f"list: {theirs.list_mb:.0f} MB and {ours.list_mb:.0f} MB")
    table.add(f"watch events/s to {size.watchers} watchers", theirs.fan_out, ours.fan_out, Goal.at_least(2.0))
    table.add("resident when empty, MB", theirs.empty_mb, ours.empty_mb, Goal.at_most(1 / 4))
    table.add("resident at 4000 pods, MB", theirs.at_4000_mb, ours.at_4000_mb, Goal.at_most(1 / 4))
    table.add("start to ready, s", theirs.start_seconds, ours.start_seconds, Goal.at_most_value(1.0))
    table.add("delete the collection, s", theirs.collection_seconds, ours.collection_seconds, None)
    table.note(
        f"collection: pods left (of the first page) {theirs.collection_left} and {ours.collection_left}"
    )
    return table
