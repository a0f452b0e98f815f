"""kubectl create, apply, edit, patch, replace and their kin: the same words, and the change is stored."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from podlife.api.codec import Object
from tests.real.clients import objects
from tests.real.clients.pair import Pair, manifest


def test_apply_creates_then_changes_then_has_nothing_to_do(pair: Pair) -> None:
    first = objects.deployment("web", replicas=1)
    assert "created" in pair("apply", "--validate=strict", "-f", "-", stdin=manifest(first)).out
    second = objects.deployment("web", replicas=3, minReadySeconds=5)
    assert "configured" in pair("apply", "--validate=strict", "-f", "-", stdin=manifest(second)).out
    assert pair.get("deployment", "web")["spec"]["minReadySeconds"] == 5
    before = pair.get("deployment", "web")["metadata"]
    assert "unchanged" in pair("apply", "-f", "-", stdin=manifest(second)).out
    assert pair.get("deployment", "web")["metadata"] == before
    # What the last manifest no longer names is taken away, what it never named stays.
    pair("scale", "deployment", "web", "--replicas=7")
    pair("apply", "-f", "-", stdin=manifest(objects.deployment("web")))
    spec = pair.get("deployment", "web")["spec"]
    assert (spec["replicas"], spec.get("minReadySeconds")) == (1, None)
    pair("get", "deployment", "web", "-o", "yaml")


def test_apply_merges_containers_and_ports_by_their_keys(pair: Pair) -> None:
    pod = objects.deployment("web")
    main = pod["spec"]["template"]["spec"]["containers"][0]
    main["ports"] = [{"containerPort": 80}, {"containerPort": 81}]
    main["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    pair("apply", "-f", "-", stdin=manifest(pod))
    sidecar = {"name": "sidecar", "image": "s:1"}
    main["ports"], main["env"] = [{"containerPort": 81}], [{"name": "B", "value": "3"}]
    pod["spec"]["template"]["spec"]["containers"] = [sidecar, main]
    pair("apply", "-f", "-", stdin=manifest(pod))
    said = pair("get", "deployment", "web", "-o", "yaml")
    assert "sidecar" in said.out
    assert "containerPort: 80\n" not in said.out


def test_strict_validation_stops_apply_before_anything_is_stored(pair: Pair) -> None:
    wrong = objects.pod("p", restartPolcy="Never")
    said = pair("apply", "--validate=strict", "-f", "-", stdin=manifest(wrong), code=1)
    assert 'unknown field "spec.restartPolcy"' in said.err
    pair("apply", "--validate=warn", "-f", "-", stdin=manifest(wrong))
    pair("create", "--validate=ignore", "-f", "-", stdin=manifest(objects.pod("q", restartPolcy="Never")))
    assert len(pair.get("pods")) == 2


def test_apply_keeps_several_objects_and_says_which_of_them_fail(pair: Pair) -> None:
    bad = objects.pod("bad", restartPolicy="Sometimes")
    pair("apply", "-f", "-", stdin=manifest(objects.config_map("a"), bad, objects.config_map("b")), code=1)
    said = pair("get", "cm,pods", "-o", "name", "--field-selector", "metadata.name!=kube-root-ca.crt")
    assert said.out.split() == ["configmap/a", "configmap/b"]


def test_a_list_of_objects_in_one_document_is_validated_and_stored(pair: Pair) -> None:
    def listed(*items: Object) -> str:
        return manifest({"apiVersion": "v1", "kind": "List", "items": list(items)})

    pair("create", "-f", "-", stdin=listed(objects.config_map("a"), objects.pod("p")))
    pair("apply", "-f", "-", stdin=listed(objects.config_map("b"), objects.deployment("web")))
    assert pair.get("deployment", "web")["spec"]["replicas"] == 1
    wrong = objects.pod("q", restartPolcy="Never")
    said = pair("apply", "-f", "-", stdin=listed(objects.config_map("c"), wrong), code=1)
    assert 'unknown field "restartPolcy" in io.k8s.api.core.v1.PodSpec' in said.err
    said = pair("get", "cm", "-o", "name", "--field-selector", "metadata.name!=kube-root-ca.crt")
    assert said.out.split() == ["configmap/a", "configmap/b"]


def test_apply_remembers_and_shows_the_last_manifest(pair: Pair) -> None:
    pair("apply", "-f", "-", stdin=manifest(objects.config_map("a", k="v")))
    pair("apply", "view-last-applied", "configmap", "a")
    pair("create", "configmap", "b")
    assert (
        "missing the kubectl.kubernetes.io/last-applied"
        in pair("apply", "-f", "-", stdin=manifest(objects.config_map("b", k="v"))).err
    )


def test_a_dry_run_of_the_server_stores_nothing(pair: Pair) -> None:
    pair("apply", "--dry-run=server", "-f", "-", "-o", "yaml", stdin=manifest(objects.pod("p")))
    pair("create", "--dry-run=server", "-f", "-", stdin=manifest(objects.job("j")))
    assert pair.get("pods,jobs") == []


def test_diff_shows_what_apply_would_change(pair: Pair) -> None:
    pair("apply", "-f", "-", stdin=manifest(objects.config_map("a", k="old")))
    pair("diff", "-f", "-", stdin=manifest(objects.config_map("a", k="old")))
    said = pair.ours("diff", "-f", "-", stdin=manifest(objects.config_map("a", k="new")), code=1)
    changes = [line for line in said.out.splitlines() if line[:1] in "+-" and "k:" in line]
    assert changes[-2:] == ["-  k: old", "+  k: new"]
    assert pair.get("configmap", "a")["data"] == {"k": "old"}


GENERATORS = [
    ["deployment", "made", "--image=i", "--replicas=2", "--port=80"],
    ["job", "made", "--image=i", "--", "true"],
    ["cronjob", "made", "--image=i", "--schedule=0 0 * * *"],
    ["configmap", "made", "--from-literal=a=b"],
    ["secret", "generic", "made", "--from-literal=a=b"],
    ["secret", "docker-registry", "made", "--docker-username=u", "--docker-password=p"],
    ["serviceaccount", "made"],
    ["service", "clusterip", "made", "--tcp=80:8080"],
    ["service", "nodeport", "made", "--tcp=80:8080", "--node-port=30080"],
    ["service", "externalname", "made", "--external-name=example.com"],
    ["poddisruptionbudget", "made", "--selector=app=web", "--min-available=1"],
]


@pytest.mark.parametrize("arguments", GENERATORS, ids=lambda arguments: " ".join(arguments)[:24])
def test_every_generator_makes_its_object(pair: Pair, arguments: list[str]) -> None:
    name = pair("create", *arguments).out.split()[0]
    assert name.endswith("/made")
    pair("get", name, "-o", "yaml")
    pair("delete", name)
    assert pair.is_gone(name)


def test_a_name_that_is_taken_is_refused(pair: Pair) -> None:
    pair("create", "configmap", "made")
    assert "already exists" in pair("create", "configmap", "made", code=1).err
    assert (
        "AlreadyExists" in pair("create", "-f", "-", stdin=manifest(objects.config_map("made")), code=1).err
    )


def test_a_namespace_is_made_and_described(pair: Pair) -> None:
    name = f"{pair.namespace}-too"
    pair("create", "namespace", name)
    pair("get", "namespace", name, "-o", "yaml")
    # Only kube-apiserver has quotas and limits to speak of.
    assert "Active" in pair.ours("describe", "namespace", name).out
    pair.ours("delete", "namespace", name, "--timeout=180s")
    assert pair.is_gone("namespace", name)
    pair.theirs("delete", "namespace", name, "--wait=false")


def test_debug_adds_an_ephemeral_container(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.pod("p", nodeName="node-x")))
    pair(
        "debug",
        "p",
        "--image=tools:1",
        "--target=main",
        "--container=dbg",
        "--attach=false",
        "--profile=general",
    )
    assert [one["name"] for one in pair.get("pod", "p")["spec"]["ephemeralContainers"]] == ["dbg"]
    pair("get", "pod", "p", "-o", "yaml")


def test_a_job_is_made_from_a_cronjob(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.cron_job("often")))
    pair("create", "job", "now", "--from=cronjob/often")
    assert pair.get("job", "now")["metadata"]["ownerReferences"][0]["name"] == "often"


def test_run_makes_a_pod(pair: Pair) -> None:
    pair("run", "shell", "--image=i", "--restart=Never", "--labels=a=b", "--env=X=1", "--port=80", "--", "sh")
    assert pair.get("pod", "shell")["spec"]["containers"][0]["args"] == ["sh"]
    pair("get", "pod", "shell", "-o", "yaml")


def test_expose_makes_a_service_for_what_it_is_given(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web")))
    pair("expose", "deployment", "web", "--port=80", "--target-port=8080")
    assert pair.get("service", "web")["spec"]["selector"] == {"app": "web"}
    # kube-apiserver may report that it repaired the allocation of an address.
    pair("describe", "service", "web", "--show-events=false")
    pair("run", "lone", "--image=i", "--port=80", "--expose")
    assert pair.get("service", "lone")["spec"]["selector"] == {"run": "lone"}


@pytest.mark.parametrize(
    ("kind", "patch", "images"),
    [
        (
            "strategic",
            '{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b"}]}}}}',
            ["b", "registry.example/main:1"],
        ),
        ("merge", '{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b"}]}}}}', ["b"]),
        ("json", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"b"}]', ["b"]),
    ],
)
def test_each_kind_of_patch_changes_the_containers_its_own_way(
    pair: Pair, kind: str, patch: str, images: list[str]
) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web")))
    pair("patch", "deployment", "web", f"--type={kind}", "-p", patch)
    containers = pair.get("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert [container["image"] for container in containers] == images
    assert "(no change)" in pair("patch", "deployment", "web", f"--type={kind}", "-p", patch).out


def test_bad_patches_are_refused_with_the_real_words(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web")))
    # The type is named by another of Go's converters there, the value and the refusal are the same.
    said = pair.ours("patch", "deployment", "web", "-p", '{"spec":{"replicas":"many"}}', code=1)
    assert 'patch: Invalid value: "map[spec:map[replicas:many]]"' in said.err
    pair(
        "patch", "deployment", "web", "--type=json", "-p", '[{"op":"remove","path":"/spec/nothing"}]', code=1
    )
    pair(
        "patch",
        "deployment",
        "web",
        "--type=merge",
        "-p",
        '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}',
        code=1,
    )
    pair("patch", "deployment", "missing", "-p", "{}", code=1)
    pair("patch", "deployment", "web", "-p", "not json", code=1)


def test_edit_stores_what_the_editor_leaves(pair: Pair, tmp_path: Path) -> None:
    pair("create", "configmap", "a", "--from-literal=k=old")
    editor = {"KUBE_EDITOR": script(tmp_path, "s/k: old/k: new/")}
    assert "edited" in pair("edit", "configmap", "a", environment=editor).out
    assert pair.get("configmap", "a")["data"] == {"k": "new"}
    assert "cancelled, no changes made" in pair("edit", "configmap", "a", environment=editor).text


def test_edit_of_the_status_and_of_a_deployment(pair: Pair, tmp_path: Path) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web")))
    pair(
        "edit",
        "deployment",
        "web",
        environment={"KUBE_EDITOR": script(tmp_path, "s/replicas: 1/replicas: 4/")},
    )
    assert pair.get("deployment", "web")["spec"]["replicas"] == 4


def test_resize_by_patch_and_by_edit(pair: Pair, tmp_path: Path) -> None:
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    made = objects.pod("web")
    made["spec"]["containers"][0]["resources"] = resources
    pair("create", "-f", "-", stdin=manifest(made))
    name = pair.get("pod", "web")["spec"]["containers"][0]["name"]

    def change(**sides: object) -> str:
        return json.dumps({"spec": {"containers": [{"name": name, "resources": sides}]}})

    pair("patch", "pod", "web", "--subresource", "resize", "-p", change(requests={"cpu": "150m"}))
    editor = {"KUBE_EDITOR": script(tmp_path, "s/cpu: 200m/cpu: 300m/")}
    pair("edit", "pod", "web", "--subresource", "resize", environment=editor)
    found = pair.get("pod", "web")
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "150m"},
        "limits": {"cpu": "300m"},
    }
    assert found["metadata"]["generation"] == 3
    pair("get", "pod", "web", "--subresource", "resize")
    pair("patch", "pod", "web", "--subresource", "resize", "-p", change(limits=None, requests=None), code=1)


def script(folder: Path, substitution: str) -> str:
    """An editor that makes one substitution in the file it is given."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\nexec sed -i -e '{substitution}' \"$1\"\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_replace_wants_the_whole_object_and_force_makes_it_anew(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.config_map("a", k="v")))
    pair("replace", "-f", "-", stdin=manifest(objects.config_map("a", other="w")))
    before = pair.get("configmap", "a")
    assert before["data"] == {"other": "w"}
    pair("replace", "--force", "-f", "-", stdin=manifest(objects.config_map("a", k="again")))
    after = pair.get("configmap", "a")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    pair("replace", "-f", "-", stdin=manifest(before), code=1)
    pair("replace", "-f", "-", stdin=manifest(objects.config_map("missing")), code=1)


def test_labels_and_annotations_are_set_kept_and_removed(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.pod("a"), objects.pod("b")))
    pair("label", "pod", "a", "color=red")
    pair("label", "pod", "a", "color=blue", code=1)
    pair("label", "pod", "a", "color=blue", "--overwrite")
    pair("label", "pods", "--all", "app-", "tier=x")
    pair("annotate", "pod", "a", "note=first", "other=second")
    pair("annotate", "pod", "a", "note-")
    metadata = pair.get("pod", "a")["metadata"]
    assert metadata["labels"] == {"color": "blue", "tier": "x"}
    assert metadata["annotations"] == {"other": "second"}
    pair("label", "pod", "a", "bad value=x", code=1)
    pair("label", "pod", "a", "k=not a value", code=1)


def test_scale_and_set_change_the_template_and_the_count(pair: Pair) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.deployment("web"), objects.stateful_set("db")))
    pair("scale", "deployment/web", "statefulset/db", "--replicas=3")
    pair("scale", "deployment", "web", "--current-replicas=9", "--replicas=1", code=1)
    pair("set", "image", "deployment/web", "main=other:2")
    pair("set", "env", "deployment/web", "A=1")
    pair("set", "resources", "deployment/web", "--limits=cpu=200m,memory=64Mi")
    pair("set", "serviceaccount", "deployment/web", "robot")
    spec = pair.get("deployment", "web")["spec"]
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["containers"][0]["image"] == "other:2"
    assert spec["template"]["spec"]["serviceAccountName"] == "robot"
    pair("get", "deployment", "web", "-o", "yaml")
    assert pair.get("statefulset", "db")["spec"]["replicas"] == 3
    pair("get", "deployment", "web", "--subresource=scale", "-o", "yaml")
    pair("get", "deployment", "web", "--subresource=status")
    pair("patch", "deployment", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    assert pair.get("deployment", "web")["spec"]["replicas"] == 2


def test_logs_exec_and_cp_say_clearly_that_there_is_no_node(pair: Pair, tmp_path: Path) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.pod("a"), objects.pod("b", nodeName="ghost")))
    assert pair("logs", "a").out == ""
    pair("exec", "a", "--", "true", code=1)
    for arguments in (["logs", "b"], ["exec", "b", "--", "true"], ["cp", str(tmp_path), "b:/tmp"]):
        said = pair.ours(*arguments, code=1)
        assert "ghost" in said.err
        assert len(said.err.strip().splitlines()) <= 2
