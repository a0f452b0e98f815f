"""descheduler, unmodified and with no more rights than its own manifests give it, evicts under disruption budgets.

With PODLIFE_ECOSYSTEM=all the same on Kubernetes' own control plane, which must end alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.real_parts import Server, running_part, tail, write_kubeconfig
from tests.kit.wait import until_blocking
from tests.real.clients.pair import One, manifest
from tests.real.conftest import require
from tests.real.ecosystem import clusters
from tests.real.ecosystem.descheduler import STRATEGY, policy, sources

CLUSTERS = {"podlife": clusters.podlife, "kubernetes": clusters.kubernetes}
WANTED = list(CLUSTERS) if os.environ.get("PODLIFE_ECOSYSTEM") == "all" else ["podlife"]
# Replicas of each Deployment, and its budget.
APPS: dict[str, tuple[int, dict[str, int] | None]] = {
    "guarded": (4, {"minAvailable": 3}),
    "frozen": (2, {"maxUnavailable": 0}),
    "free": (2, None),
    "tolerant": (1, None),
}
TOLERATION = {"key": "leaving", "operator": "Exists"}


class Descheduler:
    """descheduler as its own service account, and kubectl in the namespace of the pods."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.kubectl = One(server, "descheduled")
        self.log = folder / "descheduler.log"
        self.kubectl("create", "namespace", self.kubectl.namespace)
        self.kubectl("apply", "-f", str(sources() / "kubernetes" / "base" / "rbac.yaml"))
        token = self.kubectl("create", "token", "descheduler-sa", "--namespace=kube-system").out
        config = write_kubeconfig(folder / "descheduler.kubeconfig", server, {"token": token})
        policy_file = folder / "policy.json"
        policy_file.write_text(json.dumps(policy(self.kubectl.namespace)))
        self._flags = (
            f"--kubeconfig={config}",
            f"--policy-config-file={policy_file}",
            "--secure-port=0",
            "--v=3",
        )

    def once(self) -> str:
        """One pass over all pods; what it logged."""
        return self.kubectl(*self._flags, program="descheduler").err

    def again_and_again(self) -> Any:
        return running_part("descheduler", *self._flags, "--descheduling-interval=1s", log=self.log)

    def pods(self, app: str = "") -> dict[str, str]:
        """The nodes of those that are not being deleted, by name."""
        selector = [f"--selector=app={app}"] if app else []
        return {
            each["metadata"]["name"]: each["spec"].get("nodeName", "")
            for each in self.kubectl.get("pods", *selector)
            if "deletionTimestamp" not in each["metadata"]
        }


@pytest.fixture(scope="module", params=WANTED)
def descheduler(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[Descheduler]:
    require("descheduler", "kubectl")
    if request.param == "kubernetes":
        require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / f"descheduler-{request.param}"
    # It does nothing in a cluster of one node.
    with CLUSTERS[request.param](folder, nodes=2) as server:
        started = Descheduler(folder, server)
        _settle_on(started.kubectl, "node-0")
        yield started


def test_a_pass_evicts_what_budgets_allow_and_nothing_more(descheduler: Descheduler) -> None:
    before = descheduler.pods()
    assert set(before.values()) == {"node-0"}
    logged = descheduler.once()
    kept = {app: len(before.keys() & descheduler.pods(app).keys()) for app in APPS}
    assert kept == {"guarded": 3, "frozen": 2, "free": 0, "tolerant": 1}, logged
    assert "lone" in descheduler.pods(), "nothing would replace it"
    assert "would violate the pod's disruption budget" in logged
    assert "forbidden" not in logged
    # What replaces them waits for a node, so the budget is used up.
    left = descheduler.pods()
    descheduler.once()
    assert descheduler.pods().keys() == left.keys()


def test_passes_go_on_as_fast_as_a_budget_allows_until_the_node_is_empty(descheduler: Descheduler) -> None:
    kubectl = descheduler.kubectl
    fields = "{.metadata.name} {.metadata.deletionTimestamp} {.status.conditions[?(@.type=='Ready')].status}{'\\n'}"
    watch = kubectl.start("get", "pods", "--selector=app=guarded", "--watch", "-o", f"jsonpath={fields}")
    try:
        with descheduler.again_and_again():
            kubectl("uncordon", "node-1")
            until_blocking(
                lambda: (
                    list(descheduler.pods("guarded").values()) == ["node-1"] * 4
                    and not kubectl.get(
                        "pods", "--selector=app=guarded", "--field-selector=spec.nodeName=node-0"
                    )
                ),
                tail(descheduler.log),
            )
            # Events are sent in the background, and a pass that ends at once may lose its own.
            until_blocking(lambda: _evictions(kubectl, "guarded") >= 3, "events")
    finally:
        watch.terminate()
        seen, _ = watch.communicate(timeout=60)
    assert min(_healthy(seen.splitlines())) >= 3, seen
    until_blocking(lambda: list(descheduler.pods("free").values()) == ["node-1"] * 2, "free")
    assert set(descheduler.pods("frozen").values()) == {"node-0"}


def _settle_on(kubectl: One, node: str) -> None:
    """All pods run on one node, which most of them must leave, and budgets know them."""
    kubectl("cordon", "node-1")
    for name, (replicas, budget) in APPS.items():
        kubectl("create", "-f", "-", stdin=manifest(*_app(name, replicas, budget)))
    container = {"name": "c", "image": "i"}
    lone = {"metadata": {"name": "lone"}, "spec": {"nodeName": node, "containers": [container]}}
    kubectl("create", "-f", "-", stdin=manifest({"apiVersion": "v1", "kind": "Pod", **lone}))
    kubectl("wait", "pod/lone", "--for=condition=Ready", "--timeout=180s")
    for name, (replicas, budget) in APPS.items():
        kubectl.wait_for(f"deployment/{name}", "{.status.availableReplicas}", str(replicas))
        if budget:
            kubectl.wait_for(f"pdb/{name}", "{.status.currentHealthy}", str(replicas))
    kubectl("taint", "node", node, "leaving=:NoSchedule")


def _app(name: str, replicas: int, budget: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    labels = {"app": name}
    pod: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 1}
    if name == "tolerant":
        pod["tolerations"] = [TOLERATION]
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    if budget:
        spec = {"selector": {"matchLabels": labels}, **budget}
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": spec,
        }


def _evictions(kubectl: One, app: str) -> int:
    """How many pods of the Deployment have an event of descheduler."""
    events = kubectl.get("events.events.k8s.io", f"--field-selector=reason={STRATEGY}")
    return len({name for each in events if (name := each["regarding"]["name"]).startswith(f"{app}-")})


def _healthy(lines: list[str]) -> Iterator[int]:
    """How many pods were healthy after each change, once all had been listed."""
    ready: dict[str, bool] = {}
    for line in lines:
        name, *rest = line.split()
        ready[name] = rest == ["True"]
        if len(ready) >= 4:
            yield sum(ready.values())
