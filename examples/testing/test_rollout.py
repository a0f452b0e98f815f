"""The official client against a cluster with a socket: a rollout, awaited as `kubectl rollout status` does."""

import pytest

kubernetes = pytest.importorskip("kubernetes")


@pytest.fixture
def apps(podlife_real_cluster):
    kubernetes.config.load_kube_config(str(podlife_real_cluster.kubeconfig))
    return kubernetes.client.AppsV1Api()


def deployment(image):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def wait_for_rollout(apps, generation):
    watch = kubernetes.watch.Watch()
    for event in watch.stream(apps.list_namespaced_deployment, "default", timeout_seconds=30):
        status = event["object"].status
        counts = (status.updated_replicas, status.available_replicas, status.replicas)
        if (status.observed_generation or 0) >= generation and counts == (3, 3, 3):
            return
    pytest.fail("the rollout did not end")


@pytest.mark.podlife_cluster(nodes=2)
def test_another_image_is_rolled_out_to_all_pods(apps):
    made = apps.create_namespaced_deployment("default", deployment("app:1"))
    wait_for_rollout(apps, made.metadata.generation)
    changed = apps.patch_namespaced_deployment("web", "default", deployment("app:2"))
    wait_for_rollout(apps, changed.metadata.generation)
    pods = kubernetes.client.CoreV1Api().list_namespaced_pod("default").items
    alive = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    assert [pod.spec.containers[0].image for pod in alive] == ["app:2"] * 3
    assert {pod.spec.node_name for pod in alive} == {"n1", "n2"}
