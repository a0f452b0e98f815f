from __future__ import annotations

from podlife.kubelet.volumemanager.container_mounts import mounted_inside


def test_only_the_outermost_of_what_is_mounted_inside_is_named() -> None:
    mounts = {
        "/dir": "outer",
        "/dir/nested": "a",
        "/dir/nested-vol": "b",
        "/dir/nested/double": "c",
        "/dir/x/../y/": "d",
        "/directory": "e",
        "/elsewhere": "outer",
        "/elsewhere/z": "f",
    }
    container = {"volumeMounts": [{"name": name, "mountPath": path} for path, name in mounts.items()]}
    pod = {"spec": {"containers": [container]}}
    assert mounted_inside(pod, "outer") == ["nested", "nested-vol", "y", "z"]
    assert mounted_inside(pod, "a") == ["double"]
    assert mounted_inside(pod, "e") == []
