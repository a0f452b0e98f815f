"""A kopf operator: every ConfigMap with the label `greet` gets a pod of its name."""

import kopf
from kubernetes import client


@kopf.on.login()
def log_in(**kwargs):
    # The official client looks for KUBECONFIG once, when it is imported; this looks when it is asked.
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.create("v1", "configmaps", labels={"greet": kopf.PRESENT})
def greet(name, namespace, body, **_):
    spec = {"containers": [{"name": "main", "image": "app"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    kopf.adopt(pod, owner=body)
    client.CoreV1Api().create_namespaced_pod(namespace, pod)
