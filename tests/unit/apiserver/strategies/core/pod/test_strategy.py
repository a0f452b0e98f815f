from __future__ import annotations

from typing import Any

from podlife.apiserver.strategies import POD_EPHEMERAL_CONTAINERS, POD_RESIZE, PODS
from tests.unit.apiserver.strategies.cases_pods import box, pod


def stored(obj: dict[str, Any]) -> dict[str, Any]:
    PODS.default(obj)
    PODS.prepare_create(obj)
    obj["metadata"] |= {"resourceVersion": "1", "uid": "u", "generation": 1}
    return obj


def test_ephemeral_containers_are_added_through_their_subresource_and_nothing_else_changes() -> None:
    old = stored(pod())
    new = stored(pod(ephemeralContainers=[box("debug")], nodeName="elsewhere"))
    POD_EPHEMERAL_CONTAINERS.prepare_update(new, old)
    assert [c["name"] for c in new["spec"]["ephemeralContainers"]] == ["debug"]
    assert "nodeName" not in new["spec"]
    assert POD_EPHEMERAL_CONTAINERS.validate(new) == []
    assert POD_EPHEMERAL_CONTAINERS.validate_update(new, old) == []


def test_ephemeral_containers_are_neither_changed_nor_removed() -> None:
    old = stored(pod(ephemeralContainers=[box("debug"), box("more")]))
    new = stored(pod(ephemeralContainers=[box("debug", image="other:1")]))
    POD_EPHEMERAL_CONTAINERS.prepare_update(new, old)
    texts = [error.text.split("\n")[0] for error in POD_EPHEMERAL_CONTAINERS.validate_update(new, old)]
    assert texts == [
        'Forbidden: existing ephemeral containers "debug" may not be changed',
        'Forbidden: existing ephemeral containers "more" may not be removed',
    ]


def test_an_ephemeral_container_has_no_ports_probes_or_resources() -> None:
    new = stored(pod(ephemeralContainers=[box("debug", ports=[{"containerPort": 1}])]))
    assert [str(error) for error in PODS.validate(new)] == [
        "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"
    ]


def test_a_resize_changes_resources_and_nothing_else() -> None:
    old = stored(pod(box(resources={"requests": {"cpu": "1"}})))
    new = stored(pod(box(image="other:1", resources={"requests": {"cpu": "2"}})))
    POD_RESIZE.prepare_update(new, old)
    assert new["spec"]["containers"][0]["image"] == "busybox:1.36"
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert POD_RESIZE.validate_update(new, old) == []


def test_a_resize_that_would_change_the_class_of_service_is_refused() -> None:
    old = stored(pod(box(resources={"requests": {"cpu": "1"}})))
    new = stored(pod())
    POD_RESIZE.prepare_update(new, old)
    assert [error.path for error in POD_RESIZE.validate_update(new, old)] == [
        "spec",
        "spec.containers[0].resources.requests",
    ]


def test_a_resize_never_removes_renames_or_touches_other_resources() -> None:
    old = stored(pod(box(resources={"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}), box("b")))
    for containers, expected in (
        ((box(resources={"requests": {"cpu": "2", "ephemeral-storage": "1024Mi"}}), box("b")), []),
        (
            (box(resources={"requests": {"cpu": "2", "ephemeral-storage": "2Gi"}}), box("b")),
            ["spec: Forbidden: only cpu and memory resources are mutable"],
        ),
        (
            (box("x", resources={"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}}), box("b")),
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
        ),
        (
            (box(resources={"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}}),),
            ["spec.containers: Forbidden: containers may not be added or removed on resize"],
        ),
    ):
        new = stored(pod(*containers))
        POD_RESIZE.prepare_update(new, old)
        assert [str(error) for error in POD_RESIZE.validate_update(new, old)] == expected


def test_static_pods_and_windows_pods_are_not_resized() -> None:
    static = stored(pod(nodeName="n"))
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    for old, noun in ((static, "static"), (stored(pod(os={"name": "windows"})), "windows")):
        assert [str(error) for error in POD_RESIZE.validate_update(old, old)] == [
            f"[]: Forbidden: {noun} pods cannot be resized"
        ]


def test_a_change_that_is_not_allowed_is_shown_with_what_it_was() -> None:
    old = stored(pod(box(command=["old"])))
    new = stored(pod(box(command=["new"])))
    [error] = PODS.validate_update(new, old)
    assert error.path == "spec"
    assert error.text.endswith('containers[0].command[0]: "old" -> "new"\n')


def test_a_name_that_is_no_host_name_and_hidden_variables_are_warned_of() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    warnings = PODS.warnings(stored(pod(box(env=env), meta={"name": "a.b"})))
    assert warnings[0].startswith("metadata.name: this is used in the Pod's hostname")
    assert warnings[1] == (
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'
    )
