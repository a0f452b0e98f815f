"""kubectl get in every output format, describe, events and wait: the same words as from kube-apiserver."""

from __future__ import annotations

import pytest

from tests.real.clients import objects
from tests.real.clients.conftest import StartPair
from tests.real.clients.pair import Pair, manifest


@pytest.fixture(scope="module")
def library(start_pair: StartPair) -> Pair:
    """A namespace that is only read: two pods, one of them running on a node, and a configmap."""
    return fill(start_pair())


@pytest.fixture
def filled(pair: Pair) -> Pair:
    """The same, to be changed."""
    return fill(pair)


def fill(pair: Pair) -> Pair:
    running = objects.pod("running", nodeName="node-x")
    waiting = objects.pod("waiting", app="other", schedulerName="nobody")
    pair("create", "-f", "-", stdin=manifest(running, waiting, objects.config_map("settings", k="v")))
    pair.set_status(
        "pod/running", {"podIP": "192.0.2.7", "podIPs": [{"ip": "192.0.2.7"}], **objects.READY["status"]}
    )
    return pair


FORMATS = [
    [],
    ["-o", "wide"],
    ["-o", "name"],
    ["-o", "yaml"],
    ["-o", "json"],
    ["-o", 'jsonpath={range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}'],
    ["-o", 'go-template={{range .items}}{{.metadata.name}} {{.spec.nodeName}}{{"\\n"}}{{end}}'],
    ["-o", "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,QOS:.status.qosClass"],
    ["--no-headers"],
    ["--show-labels"],
    ["--show-kind"],
    ["-L", "app"],
    ["--sort-by=.status.phase"],
    ["--server-print=false"],
    ["--show-managed-fields=false", "-o", "yaml"],
]


@pytest.mark.parametrize("output", FORMATS, ids=lambda output: " ".join(output)[:28] or "table")
def test_pods_are_printed_the_same_in_every_format(library: Pair, output: list[str]) -> None:
    said = library("get", "pods", *output)
    assert "running" in said.out


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (["-l", "app=web"], ["running"]),
        (["-l", "app in (web, other)"], ["running", "waiting"]),
        (["-l", "app!=web"], ["waiting"]),
        (["-l", "!app"], []),
        (["--field-selector", "spec.nodeName=node-x"], ["running"]),
        (["--field-selector", "status.phase!=Running"], ["waiting"]),
        (["--field-selector", "metadata.name=waiting,spec.nodeName="], ["waiting"]),
        (["--chunk-size=1"], ["running", "waiting"]),
        (["-l", "app=none"], []),
    ],
    ids=" ".join,
)
def test_pods_are_chosen_by_selectors(library: Pair, selection: list[str], expected: list[str]) -> None:
    said = library("get", "pods", *selection, "-o", "name")
    assert said.out.split() == [f"pod/{name}" for name in expected]


def test_what_a_table_has_nothing_for_is_said(pair: Pair) -> None:
    assert "No resources found" in pair("get", "pods").err
    assert "No resources found" in pair("get", "pods,configmaps,jobs", "-l", "x=y").err


def test_bad_questions_get_the_real_answers(library: Pair) -> None:
    library("get", "pods", "--field-selector", "spec.hostname=x", code=1)
    library("get", "pod", "missing", code=1)
    library("get", "pods", "-l", "a b", code=1)
    library("get", "rockets", code=1)
    library("get", "pods", "--ignore-not-found", "missing")


def test_several_kinds_and_short_names_are_found(library: Pair) -> None:
    said = library("get", "po,cm,svc", "-o", "name", "--field-selector", "metadata.name!=kube-root-ca.crt")
    assert said.out.split() == ["pod/running", "pod/waiting", "configmap/settings"]
    library("get", "all")
    library("get", "pod/running", "configmap/settings")


def test_pods_of_every_namespace_are_listed(library: Pair) -> None:
    said = library("get", "pods", "-A", "--field-selector", f"metadata.namespace={library.namespace}")
    assert said.out.split()[0] == "NAMESPACE"
    assert said.out.count(library.namespace) == 2


def test_a_watch_prints_what_is_there_and_what_comes(filled: Pair) -> None:
    process = filled.start("get", "pods", "--watch", "--output-watch-events", "--no-headers")
    try:
        assert process.stdout is not None
        seen = [process.stdout.readline().split()[:2] for _ in range(2)]
        assert seen == [["ADDED", "running"], ["ADDED", "waiting"]]
        filled.ours("delete", "pod", "waiting", "--wait=false")
        filled.ours("label", "pod", "running", "touched=yes")
        later: list[list[str]] = []
        while ["MODIFIED", "running"] not in later:
            later.append(process.stdout.readline().split()[:2])
        assert ["DELETED", "waiting"] in later
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_a_watch_ends_when_its_time_is_up(library: Pair) -> None:
    library("get", "pods", "--watch", "--request-timeout=5s")
    library("get", "pods", "--watch-only", "--request-timeout=5s", "-o", "name")


EVERY_KIND = [
    objects.config_map("settings", k="v"),
    objects.deployment("deployed", replicas=2),
    objects.replica_set("replicated", replicas=2),
    objects.stateful_set("stateful", replicas=2),
    objects.daemon_set("everywhere"),
    objects.job("once"),
    objects.cron_job("often"),
    objects.budget("budget", minAvailable=1),
    objects.service("front"),
    objects.lease("held", "me"),
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}, "stringData": {"k": "v"}},
    {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "old"},
        "spec": {
            "replicas": 1,
            "template": objects.pod("x")["spec"]
            and {"metadata": {"labels": {"app": "old"}}, "spec": objects.pod("x")["spec"]},
        },
    },
]


@pytest.mark.parametrize("thing", EVERY_KIND, ids=lambda thing: str(thing["kind"]))
def test_every_kind_is_created_printed_and_described_the_same(pair: Pair, thing: dict[str, object]) -> None:
    created = pair("create", "-f", "-", stdin=manifest(thing))
    name = created.out.split()[0]
    for output in ([], ["-o", "wide"], ["-o", "yaml"]):
        pair("get", name, *output)
    pair("describe", name)
    pair("delete", name, "--cascade=background")
    assert pair.is_gone(name)


def test_a_claim_is_printed_and_described_the_same(pair: Pair) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    # kube-apiserver adds this for a controller that takes it away again; on ours it is the user's to set.
    metadata = {"name": "disk", "finalizers": ["kubernetes.io/pvc-protection"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    pair("create", "-f", "-", stdin=manifest(claim))
    for output in ([], ["-o", "wide"], ["-o", "yaml"]):
        pair("get", "pvc", *output)
    pair("describe", "pvc", "disk")
    pair("delete", "pvc", "disk", "--wait=false")
    pair("patch", "pvc", "disk", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert pair.is_gone("pvc", "disk")


def test_a_pod_is_described_with_its_status_and_events(filled: Pair) -> None:
    container = {
        "name": "main",
        "image": "registry.example/main:1",
        "imageID": "sha256:1",
        "containerID": "x://1",
        "ready": True,
        "restartCount": 2,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "lastState": {
            "terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}
        },
    }
    filled.set_status("pod/running", {"containerStatuses": [container], "startTime": "2026-01-01T00:00:00Z"})
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "running.1"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "running",
            "namespace": filled.namespace,
        },
        "reason": "Pulled",
        "message": "the image is here",
        "type": "Normal",
        "source": {"component": "kubelet", "host": "node-x"},
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    filled("create", "-f", "-", stdin=manifest(event))
    filled("get", "pods")
    filled("describe", "pod", "running")
    filled("describe", "pods")
    filled("events")
    filled("events", "--for", "pod/running", "--types=Normal")
    filled("get", "events")
    filled("get", "events", "-o", "wide")
    said = filled("get", "events.events.k8s.io", "-o", "yaml")
    assert "the image is here" in said.out


def test_wait_sees_conditions_fields_and_the_end(filled: Pair) -> None:
    filled("wait", "pod/running", "--for=condition=Ready", "--timeout=180s")
    filled("wait", "pod/running", "--for=jsonpath={.status.phase}=Running", "--timeout=180s")
    filled("wait", "pod/running", "--for=create", "--timeout=180s")
    filled("wait", "pod/waiting", "--for=condition=Ready", "--timeout=5s", code=1)
    filled("wait", "pod/nobody", "--for=condition=Ready", "--timeout=5s", code=1)
    process = filled.start("wait", "pod/waiting", "--for=delete", "--timeout=180s")
    try:
        filled.ours("delete", "pod", "waiting", "--wait=false")
        out, _ = process.communicate(timeout=180)
        assert process.returncode == 0, out
    finally:
        process.kill()
    filled("delete", "pod", "running", "--force", "--grace-period=0")
    filled("wait", "pod/running", "--for=delete", "--timeout=180s")
