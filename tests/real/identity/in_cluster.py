"""Clients of others in pods of `podlife up`: prints, as JSON, what each pod's log says about who it is.

A program of its own, because a cluster with containers, and what asks it, must be in the network of its pods."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kit.real_parts import part, run_kubectl
from tests.kit.up_process import UpProcess, running_up
from tests.kit.wait import until_blocking

ACCOUNT = "system:serviceaccount:default:default"
IMAGE = "registry.test/kubectl:1"
# Programs of this machine, as the process runtime runs them.
_PYTHON = """
import kubernetes
kubernetes.config.load_incluster_config()
review = kubernetes.client.AuthenticationV1Api().create_self_subject_review({})
print(review.status.user_info.username)
"""
_OWN = """
import asyncio
from podlife.client import Client, in_cluster

async def main():
    async with Client.connect(in_cluster()) as client:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        reply = await client.request("POST", path, body={})
        print(__import__("json").loads(reply.body)["status"]["userInfo"]["username"])

asyncio.run(main())
"""
_WHOAMI = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")


def containers(runtime: str) -> dict[str, tuple[str, ...]]:
    if runtime == "containerd":
        return {"kubectl": ("/kubectl", *_WHOAMI)}
    return {
        "kubectl": (str(part("kubectl")), *_WHOAMI),
        "kubernetes": (sys.executable, "-c", _PYTHON),
        "podlife": (sys.executable, "-c", _OWN),
    }


def ask(folder: Path, runtime: str, *flags: str) -> dict[str, str]:
    with running_up(folder, "--nodes", "1", "--no-ui", "--runtime", runtime, *flags) as up:
        commands = containers(runtime)
        for name, command in commands.items():
            spec: Any = {"restartPolicy": "OnFailure"}
            spec["containers"] = [{"name": "c", "image": IMAGE, "command": list(command)}]
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            run_kubectl("create", "-f", "-", kubeconfig=up.kubeconfig, stdin=json.dumps(pod))
        return {name: _said(up, name) for name in commands}


def _said(up: UpProcess, name: str) -> str:
    def phase() -> str:
        path = "jsonpath={.status.phase}"
        return run_kubectl("get", "pod", name, "-o", path, kubeconfig=up.kubeconfig).stdout

    def state() -> str:
        described = run_kubectl("describe", "pod", name, kubeconfig=up.kubeconfig).stdout
        return f"{described}\n{run_kubectl('logs', name, kubeconfig=up.kubeconfig)}\n{up.logs()}"

    try:
        until_blocking(lambda: phase() == "Succeeded", name)
    except AssertionError:
        sys.stderr.write(state())
        raise
    return run_kubectl("logs", name, kubeconfig=up.kubeconfig).stdout.strip()


def ask_in(network: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """`ask` in this network."""
    command = ["nsenter", f"--net={network}", sys.executable, "-m", __spec__.name, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="podlife-identity-") as scratch:
        sys.stdout.write(json.dumps(ask(Path(scratch), "containerd", *sys.argv[1:])))
