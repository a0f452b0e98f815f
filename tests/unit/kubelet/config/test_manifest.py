"""A pod from the text of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podlife.kubelet.config import HASH, SOURCE, ManifestError, read_manifest
from podlife.kubelet.pod_fields import is_static

TEXT = b"""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: c, image: "busybox:1", command: [run]}
"""


def made(text: bytes = TEXT, source: str = "/m/web.yaml", node: str = "Node-1") -> dict[str, Any]:
    return read_manifest(text, source, node).pod


def with_spec(**spec: Any) -> bytes:
    containers = [{"name": "c", "image": "i"}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    return json.dumps({**pod, "spec": {"containers": containers, **spec}}).encode()


def test_a_pod_is_this_nodes_own_and_nothing_drives_it_away() -> None:
    pod = made()
    metadata = pod["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("web-node-1", "default")
    assert metadata["annotations"] == {HASH: metadata["uid"], SOURCE: "file"}
    assert len(bytes.fromhex(metadata["uid"])) == 16
    assert pod["spec"]["nodeName"] == "Node-1"
    assert pod["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert pod["status"] == {"phase": "Pending"}
    assert is_static(pod)


def test_a_pod_is_filled_in_as_the_api_server_does() -> None:
    spec = made()["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    container = spec["containers"][0]
    assert (container["imagePullPolicy"], container["terminationMessagePath"]) == (
        "IfNotPresent",
        "/dev/termination-log",
    )


def test_the_uid_is_of_what_is_said_by_which_file_on_which_node() -> None:
    uid = made()["metadata"]["uid"]
    as_json = json.dumps(
        {
            "kind": "Pod",
            "spec": {"containers": [{"command": ["run"], "image": "busybox:1", "name": "c"}]},
            "metadata": {"labels": {"app": "web"}, "name": "web"},
            "apiVersion": "v1",
        },
        indent="\t",
    ).encode()
    assert made(as_json)["metadata"]["uid"] == uid
    assert made(b"# a comment\n" + TEXT)["metadata"]["uid"] == uid
    assert made(TEXT.replace(b"[run]", b"[walk]"))["metadata"]["uid"] != uid
    assert made(source="/m/other.yaml")["metadata"]["uid"] != uid
    assert made(node="node-2")["metadata"]["uid"] != uid


def test_a_uid_in_the_file_is_kept_and_what_a_server_set_is_not() -> None:
    text = TEXT.replace(
        b"labels:", b"uid: mine, resourceVersion: '7', creationTimestamp: '2030-01-01T00:00:00Z', labels:"
    )
    metadata = made(text)["metadata"]
    assert (metadata["uid"], metadata["annotations"][HASH]) == ("mine", "mine")
    assert not metadata.keys() & {"resourceVersion", "creationTimestamp"}


def test_a_toleration_that_is_there_is_not_doubled() -> None:
    given = [{"key": "k", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}]
    assert made(with_spec(tolerations=given))["spec"]["tolerations"] == given


def test_fields_that_nobody_knows_are_told_of_and_left_out() -> None:
    manifest = read_manifest(with_spec(volums=[]), "/m", "n")
    assert manifest.warnings == ('unknown field "spec.volums"',)
    assert "volums" not in manifest.pod["spec"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b" \n", "is empty"),
        (b"[]", "cannot be read: expected a JSON object"),
        (b"a: [", "cannot be read: while parsing"),
        (b"{", "cannot be read: "),
        (b"a: &x [*x]", "aliases are not supported"),
        (TEXT + b"---" + TEXT, "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"kind: Deployment\napiVersion: apps/v1", "holds Deployment of apps/v1, not a Pod of v1"),
        (b"x: 1", "holds no kind of no apiVersion"),
        (b"{kind: Pod, apiVersion: v1, spec: {containers: [{name: c}]}}", "name is needed for the pod"),
        (b"{kind: Pod, apiVersion: v1, metadata: {name: p}}", "at least one container"),
        (b"{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: 3}", "cannot unmarshal number"),
        (TEXT.replace(b"name: web", b"name: We_b"), "metadata.name: 'We_b-node-1'"),
        (TEXT.replace(b"name: web", b"name: web, namespace: a.b"), "metadata.namespace: 'a.b'"),
        (TEXT.replace(b"name: web", b"name: web, uid: a/../../../b"), "'a/../../../b' cannot name a folder"),
        (TEXT.replace(b"name: web", b"name: web, uid: a_b"), "metadata.uid: 'a_b'"),
        (TEXT.replace(b"name: c", b"name: C!"), "name of a container: 'C!'"),
        (with_spec(initContainers=[{"name": "c"}]), "two containers are named 'c'"),
        (
            with_spec(containers=[{"name": "c", "resources": {"limits": {"cpu": "x"}}}]),
            "quantities must match",
        ),
        (
            TEXT.replace(b"labels:", b"annotations: {kubernetes.io/config.mirror: x}, labels:"),
            "by the node alone",
        ),
    ],
)
def test_what_is_no_pod_of_this_node_is_refused_with_a_reason_in_one_line(text: bytes, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        made(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"serviceAccountName": "x"}, "serviceaccounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, "secrets"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "secrets"),
        ({"volumes": [{"name": "v", "rbd": {"secretRef": {"name": "s"}}}]}, "secrets"),
        (
            {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}]},
            "secrets",
        ),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}, "secrets"),
        ({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}]}, "secrets"),
        ({"volumes": [{"name": "v", "configMap": {"name": "s"}}]}, "configmaps"),
        (
            {
                "initContainers": [
                    {
                        "name": "i",
                        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}],
                    }
                ]
            },
            "configmaps",
        ),
        ({"resourceClaims": [{"name": "r"}]}, "resourceclaims"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}]}, "persistentvolumeclaims"),
        ({"volumes": [{"name": "v", "csi": {"driver": "d"}}]}, "csidrivers (via CSI volumes)"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "serviceaccounts (via projected volumes)",
        ),
    ],
)
def test_a_static_pod_may_not_need_the_api_server(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(ManifestError) as caught:
        made(with_spec(**spec))
    assert str(caught.value) == f"static pods may not reference {what}"


def test_volumes_of_the_node_itself_are_taken() -> None:
    volumes = [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "hostPath": {"path": "/x"}},
        {"name": "c", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    assert len(made(with_spec(volumes=volumes))["spec"]["volumes"]) == 3
