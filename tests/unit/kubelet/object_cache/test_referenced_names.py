from __future__ import annotations

from podlife.kubelet.object_cache.referenced_names import named_config_maps, named_secrets

POD = {
    "spec": {
        "imagePullSecrets": [{"name": "pull"}, {}],
        "initContainers": [
            {"envFrom": [{"configMapRef": {"name": "from-init"}}, {"secretRef": {"name": "s1"}}]}
        ],
        "containers": [
            {
                "env": [
                    {"name": "A", "value": "plain"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "by-key", "key": "k"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}},
                ]
            }
        ],
        "volumes": [
            {"name": "v", "configMap": {"name": "as-volume"}},
            {"name": "w", "secret": {"secretName": "s3"}},
            {
                "name": "p",
                "projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "s4"}}]},
            },
        ],
    }
}


def test_config_maps_are_found_wherever_a_pod_may_name_them() -> None:
    assert named_config_maps(POD) == {"from-init", "by-key", "as-volume", "projected"}


def test_secrets_are_found_wherever_a_pod_may_name_them_also_for_pulling_images() -> None:
    assert named_secrets(POD) == {"pull", "s1", "s2", "s3", "s4"}


def test_a_pod_without_anything_names_nothing() -> None:
    assert named_config_maps({}) == named_secrets({"spec": {}}) == frozenset()
