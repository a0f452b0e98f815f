"""A kopf operator, run as kopf runs it, on a cluster with a socket: pods really get a node and run."""

import time
from pathlib import Path

import pytest

kopf_testing = pytest.importorskip("kopf.testing")
kubernetes = pytest.importorskip("kubernetes")

OPERATOR = Path(__file__).parent / "greeter.py"


@pytest.fixture
def core(podlife_real_cluster, monkeypatch):
    # kopf and the official client both find the cluster by this.
    monkeypatch.setenv("KUBECONFIG", str(podlife_real_cluster.kubeconfig))
    kubernetes.config.load_kube_config(str(podlife_real_cluster.kubeconfig))
    return kubernetes.client.CoreV1Api()


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)


def phases(core):
    return {pod.metadata.name: pod.status.phase for pod in core.list_namespaced_pod("default").items}


def test_a_greeting_runs_and_goes_with_its_config_map(core):
    with kopf_testing.KopfRunner(["run", "--standalone", "-n", "default", str(OPERATOR)]) as runner:
        core.create_namespaced_config_map("default", {"metadata": {"name": "hello", "labels": {"greet": ""}}})
        wait_for(lambda: phases(core) == {"hello": "Running"})
        # The collector of what owners leave behind is at work, too.
        core.delete_namespaced_config_map("hello", "default")
        wait_for(lambda: phases(core) == {})
    assert runner.exit_code == 0, runner.output
