"""The agent with containerd as a node of a real kube-apiserver: a pod's life as kubectl shows it, images that cannot be
had, and both the agent and the daemon killed while pods run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import objects
from tests.kit.agent_process import AgentProcess
from tests.kit.real_parts import Server
from tests.kit.wait import until_blocking
from tests.real.conftest import Kubectl
from tests.real.node.test_pod_life_process import User

from .conftest import own_daemon
from .daemon import IMAGE, Daemon

Object = dict[str, Any]
NODE = "node-b"


# One of its own: what is killed here would disturb the others.
daemon = pytest.fixture(scope="module")(own_daemon)


@pytest.fixture
def user(kube: Server, kubectl: Kubectl) -> Iterator[User]:
    one = User(kubectl, kube)
    one.run("create", "namespace", one.namespace)
    yield one
    one.run("delete", "namespace", one.namespace, "--wait=false")


@pytest.fixture
def agent(daemon: Daemon, kube: Server, user: User, tmp_path: Path) -> Iterator[AgentProcess]:
    flags = ("--runtime", "containerd", "--containerd-socket", str(daemon.socket))
    one = AgentProcess(tmp_path, kube.kubeconfig_for(NODE), *flags, name=NODE)
    one.start()
    try:
        yield one
    finally:
        user.run("delete", "pods", "--all", "--timeout=120s")
        one.stop()
        user.run("delete", "node", NODE)


def pod(name: str, *containers: Object, **spec: Any) -> Object:
    made = objects.pod(name, *containers, nodeName=NODE, terminationGracePeriodSeconds=5, **spec)
    return {"apiVersion": "v1", "kind": "Pod", **made}


def container(name: str, script: str, **fields: Any) -> Object:
    return objects.container(name, **{"image": IMAGE, "command": ["sh", "-c", script], **fields})


def states(user: User, name: str) -> dict[str, Object]:
    """Of each container by its name, what its status says."""
    return {each["name"]: each for each in user.get("pod", name)["status"].get("containerStatuses", [])}


def test_the_whole_life_of_a_pod_as_kubectl_shows_it(user: User, agent: AgentProcess) -> None:
    shared = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    first = container("first", "echo made > /shared/made", **shared)
    main = container(
        "main",
        "trap 'echo bye > /dev/termination-log; exit 3' TERM; touch /shared/ready; sleep 1000 & wait",
        readinessProbe={"exec": {"command": ["cat", "/shared/made", "/shared/ready"]}, "periodSeconds": 1},
        resources={"limits": {"memory": "64Mi", "cpu": "200m"}},
        **shared,
    )
    user.create(pod("web", main, initContainers=[first], volumes=[{"name": "shared", "emptyDir": {}}]))
    user.run("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
    shown = user.get("pod", "web")["status"]
    assert shown["phase"] == "Running"
    assert shown["podIP"].startswith("10.86.")
    assert shown["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert shown["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert shown["containerStatuses"][0]["imageID"]
    runtime = user.get("node", NODE)["status"]["nodeInfo"]["containerRuntimeVersion"]
    assert runtime.startswith("containerd://")
    user.run("delete", "pod", "web", "--timeout=120s")
    assert user.get("pods")["items"] == []
    user.until_told("Created", "Started", "Killing")


def test_a_pod_is_resized_in_place_but_not_below_the_memory_that_it_uses(
    user: User, agent: AgentProcess
) -> None:
    limits = "cat /sys/fs/cgroup/memory.max || cat /sys/fs/cgroup/memory/memory.limit_in_bytes"
    main = container("main", "sleep 1000", resources={"limits": {"memory": "64Mi", "cpu": "200m"}})
    user.create(pod("web", main))
    user.run("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")

    def resize(memory: str) -> None:
        amounts = {"memory": memory, "cpu": "300m"}
        change = {"name": "main", "resources": {"limits": amounts, "requests": amounts}}
        body = json.dumps({"spec": {"containers": [change]}})
        user.run("patch", "pod", "web", "--subresource", "resize", "--patch", body)

    def resources() -> Object:
        return dict(states(user, "web")["main"]["resources"]["limits"])

    resize("96Mi")
    wanted = {"memory": "96Mi", "cpu": "300m"}
    until_blocking(lambda: resources() == wanted, "the status does not show the resize")
    assert user.run("exec", "web", "--", "sh", "-c", f"{{ {limits}; }} 2>/dev/null").strip() == str(96 << 20)
    resize("4Ki")
    user.until_told("ResizeStarted", "ResizeCompleted", "ResizeError")
    conditions = user.get("pod", "web")["status"]["conditions"]
    [failed] = [each for each in conditions if each["type"] == "PodResizeInProgress"]
    assert failed["reason"] == "Error"
    assert 'set container "main" memory limit (4096) below current usage' in failed["message"]
    assert resources() == wanted
    assert states(user, "web")["main"]["restartCount"] == 0


def test_a_pod_whose_images_cannot_be_had_waits_with_the_reasons_of_a_kubelet(
    user: User, agent: AgentProcess
) -> None:
    user.create(
        pod(
            "bad",
            container("refused", "", image="127.0.0.1:1/none:1"),
            container("never", "", image="podlife.test/none:1", imagePullPolicy="Never"),
            container("misnamed", "", image="UPPER:x:y"),
        )
    )
    wanted = {"refused": "ImagePullBackOff", "never": "ErrImageNeverPull", "misnamed": "InvalidImageName"}

    def reasons() -> dict[str, str]:
        found = states(user, "bad").items()
        return {name: each["state"].get("waiting", {}).get("reason", "") for name, each in found}

    until_blocking(lambda: reasons() == wanted, f"the reasons never were {wanted}")


def test_agent_and_daemon_killed_while_pods_run_restart_nothing_and_report_every_exit_code(
    user: User, agent: AgentProcess, daemon: Daemon, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.mkdir()
    mounts = {"volumeMounts": [{"name": "told", "mountPath": "/told"}]}
    ends = container(
        "ends", "while [ ! -e /told/go ]; do sleep 0.05; done; touch /told/gone; exit 9", **mounts
    )
    stays = container("stays", "echo run >> /told/runs; trap 'exit 0' TERM; sleep 1000 & wait", **mounts)
    volumes = [{"name": "told", "hostPath": {"path": str(told)}}]
    user.create(pod("web", ends, stays, restartPolicy="Never", volumes=volumes))
    user.run("wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
    until_blocking((told / "runs").exists, "it never ran")
    before = states(user, "web")["stays"]
    agent.kill()
    daemon.kill()
    (told / "go").touch()
    until_blocking((told / "gone").exists, "the container did not run on")
    daemon.start()
    agent.start()
    until_blocking(lambda: "terminated" in states(user, "web")["ends"]["state"], "its end was not reported")
    after = states(user, "web")
    # Daemons from version 2 on forget the code of what ended while they were away, and say so.
    runtime = user.get("node", NODE)["status"]["nodeInfo"]["containerRuntimeVersion"]
    code = after["ends"]["state"]["terminated"]["exitCode"]
    assert code == 9 or (code == 255 and not runtime.startswith("containerd://1."))
    assert after["stays"] == before
    assert (told / "runs").read_text() == "run\n"


def test_a_pod_has_its_own_hosts_file_and_its_kernel_parameters(user: User, agent: AgentProcess) -> None:
    script = "cat /etc/hosts; cat /proc/sys/net/ipv4/ip_unprivileged_port_start"
    aliases = [{"ip": "192.0.2.9", "hostnames": ["db", "db.example"]}]
    sysctls = [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "81"}]
    spec = {"restartPolicy": "Never", "hostAliases": aliases, "securityContext": {"sysctls": sysctls}}
    user.create(pod("named", container("main", script), **spec))
    user.run("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/named", "--timeout=120s")
    address = user.get("pod", "named")["status"]["podIP"]
    said = user.run("logs", "named").splitlines()
    assert said[0] == "# Kubernetes-managed hosts file."
    assert f"{address}\tnamed" in said
    assert said[-2:] == ["192.0.2.9\tdb\tdb.example", "81"]


def test_a_pod_with_an_unsafe_kernel_parameter_is_refused(user: User, agent: AgentProcess) -> None:
    sysctls = [{"name": "kernel.msgmax", "value": "65536"}]
    user.create(pod("unsafe", container("main", "true"), securityContext={"sysctls": sysctls}))
    user.run("wait", "--for=jsonpath={.status.reason}=SysctlForbidden", "pod/unsafe", "--timeout=120s")
