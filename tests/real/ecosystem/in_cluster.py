"""Programs as Deployments of `podlife up`, each with the service account and roles of its manifests and nothing more.

podlife's collector and its Job controller replace those of `up`, which runs without them here, so that what they do is
theirs; beside them an operator written with kopf, and the Job of descheduler. With containers all of it happens in the
network of the pods: this module is also a program, which prints what came of it as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.kit.real_parts import ROOT, Server, free_port, part
from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until_blocking
from tests.real.clients.pair import Command, One, manifest
from tests.real.containerd.daemon import containerd_daemon
from tests.real.containerd.image import Image, make_image
from tests.real.ecosystem.descheduler import is_ready, policy
from tests.real.ecosystem.descheduler import sources as descheduler_sources

SYSTEM = "podlife-system"
# All but what runs in pods.
_CONTROLLERS = "*,scheduler,local-path-provisioner,-pod-garbage-collector,-job-controller"
_SECONDS = 600.0
# Reads something as the pod that it runs in; prints what the server answers.
_READ = """
import json, os, ssl, sys, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
headers = {"Authorization": "Bearer " + open(folder + "/token").read()}
context = ssl.create_default_context(cafile=folder + "/ca.crt")
try:
    with urllib.request.urlopen(
        urllib.request.Request(server + sys.argv[1], headers=headers), context=context, timeout=60
    ) as response:
        print(json.load(response)["kind"])
except urllib.error.HTTPError as error:
    print(json.load(error)["message"])
"""
# With containers, the machine's Python is what their image lacks.
_PYTHON = ("/lib", "/lib64", "/usr", sys.base_prefix, sys.prefix, str(ROOT / "src"))


def images() -> dict[str, Image]:
    """By name: podlife's and kopf's, whose Python is mounted."""
    run = f'#!/bin/sh\nexec {sys.executable} "$@"\n'.encode()
    added = {"bin/python": run, "bin/podlife": run.replace(b' "$@"', b' -m podlife "$@"')}
    image = make_image(part("busybox-static"), entrypoint=["/bin/podlife"], added=added)
    evicting = make_image(part("busybox-static"), user="1000", added={"bin/descheduler": part("descheduler")})
    return {
        "docker.io/library/podlife:0.1.0": image,
        "docker.io/library/kopf:1": image,
        "registry.k8s.io/descheduler/descheduler:v0.36.0": evicting,
    }


class InCluster:
    """A cluster whose pods are programs of this machine."""

    def __init__(self, up: UpProcess, runtime: str) -> None:
        ca_file = up.data / "pki" / "ca.crt"
        self._server = Server("127.0.0.1", up.port, ca_file, up.kubeconfig, up.data, up.pid, up.log, {})
        self._up = up
        self.is_process = runtime == "process"

    def namespace(self, name: str) -> One:
        return One(self._server, name)

    def install(self, base: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        """A Deployment, which runs what this machine has, and all that comes with it."""
        names = []

        def adapt(item: dict[str, Any]) -> None:
            if item["kind"] == "Deployment":
                names.append((item["metadata"]["namespace"], item["metadata"]["name"]))
                pod = item["spec"]["template"]["spec"]
                if self.is_process:
                    # Replicas would share the machine's ports.
                    item["spec"]["replicas"] = 1
                    _as_process(pod)
                else:
                    _with_python(pod)
                change(pod["containers"][0])

        self.apply(base, adapt)
        [(namespace, name)] = names
        self.wait(namespace, "rollout", "status", f"deployment/{name}")

    def apply(self, base: Path, adapt: Callable[[dict[str, Any]], None]) -> None:
        """The objects of a kustomization, each adapted."""
        kubectl = self.namespace("default")
        objects = list(yaml.safe_load_all(kubectl("kustomize", str(base)).out))
        for each in objects:
            adapt(each)
        kubectl("apply", "-f", "-", stdin=manifest(*objects))

    def wait(self, namespace: str, *command: str) -> None:
        kubectl = self.namespace(namespace)
        said = kubectl.run(Command((*command, "--timeout=180s")))
        assert said.code == 0, f"{said.text}\n{kubectl('describe', 'pods').out}\n{self._up.logs()}"

    def read(self, namespace: str, deployment: str, path: str) -> str:
        """What a pod of the Deployment gets when it reads this path as itself."""
        return self.namespace(namespace)(
            "exec", f"deployment/{deployment}", "--", sys.executable, "-c", _READ, path
        ).out.strip()

    def who(self, resource: str, name: str, verb: str) -> str:
        """The users whose requests succeeded, from the audit log; of a subresource as RESOURCE/SUBRESOURCE."""
        # The log is written a moment after the response.
        until_blocking(lambda: bool(self._users(resource, name, verb)), f"{verb} {resource} {name}")
        return " ".join(sorted(self._users(resource, name, verb)))

    def _users(self, resource: str, name: str, verb: str) -> set[str]:
        # Its last line may be incomplete.
        lines = (self._up.data / "audit" / "audit.log").read_text().split("\n")[:-1]
        return {
            event["user"]["username"]
            for event in map(json.loads, lines)
            if event["verb"] == verb and event["responseStatus"]["code"] < 300
            for item in [event.get("objectRef") or {}]
            if "/".join(filter(None, (item.get("resource"), item.get("subresource")))) == resource
            and item.get("name") == name
        }


def _as_process(pod: dict[str, Any]) -> None:
    """Processes need a command, a port that is free on this machine, and a user who may read the tests' Python."""
    [container] = pod["containers"]
    command = container.get("command") or ["python", "-m", "podlife"]
    container["command"] = [sys.executable, *command[1:]]
    pod.pop("securityContext", None)
    if "ports" in container:
        port = container["ports"][0]["containerPort"] = free_port()
        container["args"] = [each.replace(":8080", f":{port}") for each in container["args"]]


def _with_python(pod: dict[str, Any]) -> None:
    for number, path in enumerate(_PYTHON):
        volume = {"name": f"python-{number}", "hostPath": {"path": path}}
        pod.setdefault("volumes", []).append(volume)
        mount = {"name": f"python-{number}", "mountPath": path, "readOnly": True}
        pod["containers"][0].setdefault("volumeMounts", []).append(mount)


def collector(cluster: InCluster) -> dict[str, str]:
    """deploy/gc removes an orphan, and the terminated pod that is one too many."""

    def change(container: dict[str, Any]) -> None:
        container["args"] += ["--terminated-pod-gc-threshold=1", "--quarantine=1s"]

    cluster.install(ROOT / "deploy" / "gc", change)
    kubectl = cluster.namespace("default")
    ended = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "kopf:1", "command": ["true"]}]}
    pods = {"older": ended, "orphan": {**ended, "nodeName": "gone"}, "newer": ended}
    for name, collected in {"older": "", "orphan": "orphan", "newer": "older"}.items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pods[name]}
        kubectl("create", "-f", "-", stdin=manifest(pod))
        if collected != name:
            kubectl.wait_for(f"pod/{name}", "{.status.phase}", "Succeeded")
        if collected:
            kubectl("wait", f"pod/{collected}", "--for=delete", "--timeout=180s")
    return {
        "left": " ".join(each["metadata"]["name"] for each in kubectl.get("pods")),
        "orphan deleted by": cluster.who("pods", "orphan", "delete"),
        "older deleted by": cluster.who("pods", "older", "delete"),
        "pods": cluster.read(SYSTEM, "podlife-gc", "/api/v1/pods"),
        "secrets": cluster.read(SYSTEM, "podlife-gc", "/api/v1/secrets"),
    }


def controllers(cluster: InCluster) -> dict[str, str]:
    """deploy/controllers, of which only one is asked for, runs a Job."""

    def change(container: dict[str, Any]) -> None:
        container["args"] = [each.replace("=*", "=job-controller") for each in container["args"]]

    cluster.install(ROOT / "deploy" / "controllers", change)
    kubectl = cluster.namespace("default")
    kubectl("create", "job", "once", "--image=kopf:1", "--", "true")
    kubectl("wait", "job/once", "--for=condition=Complete", "--timeout=180s")
    [pod] = kubectl.get("pods", "--selector=job-name=once")
    return {
        # Its finalizer was removed when it had been counted.
        "pod written by": cluster.who("pods", pod["metadata"]["name"], "patch"),
        "jobs": cluster.read(SYSTEM, "podlife-controllers", "/apis/batch/v1/jobs"),
        "metrics": cluster.read(SYSTEM, "podlife-controllers", "/metrics"),
    }


def operator(cluster: InCluster) -> dict[str, str]:
    """The kopf operator of examples/operator answers a custom resource, and lets go of it when it is deleted."""
    cluster.install(ROOT / "examples" / "operator")
    kubectl = cluster.namespace("greeter")
    greeting = {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "a"}}
    kubectl("create", "-f", "-", stdin=manifest({**greeting, "spec": {"name": "world"}}))
    said = {}
    for name in ("world", "moon"):
        kubectl("patch", "greeting", "a", "--type=merge", "-p", json.dumps({"spec": {"name": name}}))
        kubectl.wait_for("greeting/a", "{.status.says}", f"Hello, {name}!")
        said[name] = kubectl("get", "greetings", "--no-headers").out.strip()
    kubectl("delete", "greeting", "a", "--timeout=180s")
    return {
        **said,
        "status written by": cluster.who("greetings/status", "a", "patch"),
        "greetings": cluster.read("greeter", "greeter", "/apis/example.com/v1/namespaces/greeter/greetings"),
        "elsewhere": cluster.read("greeter", "greeter", "/apis/example.com/v1/namespaces/default/greetings"),
    }


def descheduler(cluster: InCluster) -> dict[str, str]:
    """descheduler's own Job evicts as many pods as the budget allows; no other node is available for them."""
    kubectl = cluster.namespace("leaving")
    kubectl("create", "namespace", "leaving")
    kubectl("create", "deployment", "web", "--replicas=0", "--image=kopf:1", "--", "sleep", "3600")
    where = {
        "spec": {"nodeSelector": {"kubernetes.io/hostname": "node-0"}, "terminationGracePeriodSeconds": 1}
    }
    patch = json.dumps({"spec": {"replicas": 3, "template": where}})
    kubectl("patch", "deployment", "web", "-p", patch)
    kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")
    kubectl.wait_for("pdb/web", "{.status.currentHealthy}", "3")
    before = {each["metadata"]["name"] for each in kubectl.get("pods")}
    kubectl("taint", "node", "node-0", "leaving=:NoSchedule")
    cluster.apply(descheduler_sources() / "kubernetes" / "job", _descheduler_of(cluster))
    cluster.wait("kube-system", "wait", "job/descheduler-job", "--for=condition=Complete")
    left = {each["metadata"]["name"] for each in kubectl.get("pods") if is_ready(each)}
    [evicted] = before - left
    return {
        "ready": str(len(left)),
        "evicted by": cluster.who("pods/eviction", evicted, "create"),
    }


def _descheduler_of(cluster: InCluster) -> Callable[[dict[str, Any]], None]:
    def adapt(item: dict[str, Any]) -> None:
        if item["kind"] == "ConfigMap":
            item["data"]["policy.yaml"] = json.dumps(policy("leaving"))
        elif item["kind"] == "Job" and cluster.is_process:
            [container] = item["spec"]["template"]["spec"]["containers"]
            container["command"] = [str(part("descheduler"))]
            container["args"] += ["--secure-port=0"]
            del container["livenessProbe"], container["securityContext"]

    return adapt


STORIES = (collector, controllers, operator, descheduler)


@contextmanager
def running(folder: Path, runtime: str, *flags: str) -> Iterator[InCluster]:
    how = ("--nodes=2", "--no-ui", f"--runtime={runtime}", f"--controllers={_CONTROLLERS}", *flags)
    with running_up(folder, *how) as up:
        yield InCluster(up, runtime)


def tell(folder: Path, runtime: str, *flags: str) -> dict[str, dict[str, str]]:
    """What came of every story."""
    with running(folder, runtime, *flags) as cluster:
        return {story.__name__: story(cluster) for story in STORIES}


def tell_in_containers() -> dict[str, dict[str, str]]:
    """The same with a containerd of its own, in the network of its pods."""
    with containerd_daemon(is_inside=True) as daemon:
        for name, image in images().items():
            daemon.import_image(image, name)
        flags = (f"--containerd-socket={daemon.socket}", f"--advertise-address={daemon.make_gateway()}")
        command = ["nsenter", f"--net={daemon.network}", sys.executable, "-m", __name__, *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr
    told: dict[str, dict[str, str]] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="podlife-in-cluster-") as scratch:
        sys.stdout.write(json.dumps(tell(Path(scratch), "containerd", *sys.argv[1:])))
