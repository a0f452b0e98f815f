"""Helm 4, unmodified, with charts of ours in the shape of popular ones: every step as on Kubernetes' own control plane.

Helm applies on the server's side by default and waits by watching; both are used here unless a test says otherwise.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.real_parts import Server
from tests.kit.webhook_server import WebhookServer, patched, webhook_server
from tests.real.clients.pair import One
from tests.real.conftest import require
from tests.real.ecosystem.release import Release

IN_NAMESPACE = "configmaps,secrets,services,serviceaccounts"
WEB = f"{IN_NAMESPACE},deployments,ingresses,horizontalpodautoscalers,poddisruptionbudgets,roles,rolebindings"
everything = pytest.mark.skipif(
    os.environ.get("PODLIFE_ECOSYSTEM") != "all", reason="`make ecosystem` runs this one too"
)


@pytest.fixture(scope="module", autouse=True)
def helm() -> None:
    require("helm")


def test_a_web_application_is_installed_upgraded_rolled_back_and_uninstalled(
    both_clusters: tuple[Server, Server],
) -> None:
    web = Release(both_clusters, "web")
    installed = web.install()
    assert "HPA: true, budgets: true, monitors: false" in installed.out
    web.check_objects(WEB)
    web.helm("get", "manifest", "web")
    web.helm("get", "notes", "web")

    web.upgrade("--set=greeting=hi,sidecar=true,ingress.hosts={a.example.com,b.example.com},env.A=1,env.B=2")
    web.check_objects(WEB)
    web.upgrade("--set=autoscaling.enabled=true,ingress.enabled=false,env.B=3,service.port=8080")
    left = web.check_objects(WEB)
    assert "HorizontalPodAutoscaler/web" in left
    assert "Ingress/web" not in left
    assert left["Deployment/web"]["spec"]["replicas"] == 1, (
        "the default, since nobody owns the field any more"
    )

    web.helm("rollback", "web", "1", "--wait")
    back = web.check_objects(WEB)
    assert "Ingress/web" in back
    web.helm("history", "web")
    web.helm("get", "all", "web", "--revision=2")
    web.helm("list")
    web.helm("uninstall", "web", "--wait", "--cascade=foreground")
    assert web.check_objects(WEB) == {}
    web.helm("status", "web", code=1)


@everything
def test_changes_by_kubectl_conflict_with_an_upgrade_unless_it_is_forced(
    both_clusters: tuple[Server, Server],
) -> None:
    web = Release(both_clusters, "web")
    web.install("--set=replicas=1")
    web.kubectl("scale", "deployment/web", "--replicas=2")
    web.kubectl("label", "service/web", "team=blue")
    refused = web.upgrade("--set=replicas=3", code=1)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in refused.err
    web.kubectl("scale", "deployment/web", "--replicas=1")
    web.kubectl("set", "image", "deployment/web", "web=example.com/web:patched")
    web.upgrade("--set=replicas=1", code=1)
    web.check_objects(WEB)
    web.upgrade("--set=replicas=3,image.tag=2.0", "--force-conflicts")
    forced = web.check_objects(WEB)
    assert forced["Service/web"]["metadata"]["labels"]["team"] == "blue"
    # As Helm 3 did, and back.
    web.upgrade("--set=replicas=1,env.A=1", "--server-side=false")
    web.check_objects(WEB)
    web.upgrade("--set=replicas=2,greeting=again", "--server-side=true")
    web.check_objects(WEB)
    web.kubectl("delete", "service", "web")
    web.upgrade("--reuse-values")
    web.check_objects(WEB)
    web.helm("uninstall", "web", "--keep-history", "--wait")
    web.helm("rollback", "web", "1", "--wait")
    web.check_objects(WEB)
    web.helm("uninstall", "web", "--wait")


@everything
def test_an_upgrade_that_does_not_become_ready_is_rolled_back(both_clusters: tuple[Server, Server]) -> None:
    web = Release(both_clusters, "web")
    web.install("--set=replicas=1", "--dry-run=server")
    web.install("--set=replicas=-1", "--rollback-on-failure", code=1)
    assert web.check_objects(WEB) == {}
    web.install("--set=replicas=1")
    broken = '--set-json=podAnnotations={"sim.podlife.dev/create-error": "no such program"}'
    web.upgrade(broken, "--rollback-on-failure", "--timeout=15s", code=1)
    back = web.check_objects(WEB)
    assert back["Deployment/web"]["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    web.helm("history", "web")
    web.upgrade("--set=service.port=99999", code=1)
    web.upgrade("--set=podAnnotations.a={b,1}", code=1)
    web.check_objects(WEB)
    web.helm("uninstall", "web", "--wait")


def test_an_operator_brings_its_definitions_and_custom_resources(
    both_clusters: tuple[Server, Server],
) -> None:
    operator = Release(both_clusters, "operator")
    kinds = f"{IN_NAMESPACE},deployments,widgets"
    cluster_wide = ("clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=operator")
    operator.install()
    operator.check_objects(kinds)
    operator.check_objects(*cluster_wide)
    operator.check_objects(
        "customresourcedefinitions", "--field-selector=metadata.name=widgets.helm.example.com"
    )
    operator.upgrade(
        "--set=widgets.small.size=5,widgets.large=null,widgets.medium.size=3,widgets.medium.color=blue"
    )
    widgets = operator.check_objects(kinds)
    assert widgets["Widget/operator-small"]["spec"] == {"size": 5, "replicas": 1, "color": "red"}
    assert "Widget/operator-large" not in widgets
    operator.kubectl("scale", "widget/operator-small", "--replicas=4")
    parts = "widgets.small.parts[0].name=a,widgets.small.parts[0].count=2"
    operator.upgrade(f"--set=widgets.small.size=2,{parts}")
    operator.upgrade("--set=widgets.small.size=500", code=1)
    operator.upgrade(f"--set=widgets.small.size=1,{parts}", code=1)
    operator.upgrade("--set=widgets.small.unknown=1", code=1)
    operator.check_objects(kinds)
    operator.helm("rollback", "operator", "1", "--wait")
    operator.check_objects(kinds)
    operator.helm("uninstall", "operator", "--wait")
    assert operator.check_objects(kinds) == {}
    operator.kubectl("get", "widgets")
    operator.kubectl("delete", "crd", "widgets.helm.example.com")


def test_hooks_run_in_their_order_and_are_deleted_by_their_policies(
    both_clusters: tuple[Server, Server],
) -> None:
    hooks = Release(both_clusters, "hooks")
    kinds = f"{IN_NAMESPACE},jobs"
    hooks.install()
    left = hooks.check_objects(kinds)
    assert "Job/hooks-announce" in left
    assert "Job/hooks-migrate" not in left
    hooks.helm("test", "hooks")
    hooks.helm("get", "hooks", "hooks")
    hooks.upgrade("--set=version=2")
    hooks.upgrade("--set=version=3,fail=migrate", code=1)
    failed = hooks.check_objects(kinds)
    assert failed["ConfigMap/hooks"]["data"]["version"] == "2", (
        "nothing is applied when a hook before it fails"
    )
    hooks.upgrade("--set=version=4,fail=test")
    hooks.helm("test", "hooks", code=1)
    hooks.helm("rollback", "hooks", "1", "--wait")
    hooks.check_objects(kinds)
    hooks.helm("history", "hooks")
    hooks.helm("uninstall", "hooks", "--wait")
    assert "ConfigMap/hooks-kept" in hooks.check_objects(kinds)


def test_a_database_keeps_its_password_and_claims(both_clusters: tuple[Server, Server]) -> None:
    database = Release(both_clusters, "database")
    kinds = "configmaps,services,statefulsets,persistentvolumeclaims"
    database.install()
    first = database.check_objects(kinds)
    assert first["ConfigMap/database-seen"]["data"] == {
        "secret": "new", "namespace": "Active", "sets": "0", "nothing": "true"
    }  # fmt: skip
    passwords = [_password(one) for one in (database.pair.ours, database.pair.theirs)]
    database.upgrade("--set=replicas=3,image=example.com/database:17")
    second = database.check_objects(kinds)
    assert second["ConfigMap/database-seen"]["data"]["secret"] == "found"
    assert passwords == [_password(one) for one in (database.pair.ours, database.pair.theirs)]
    database.upgrade("--set=storage=2Gi", code=1)
    database.check_objects(kinds)
    database.helm("rollback", "database", "1", "--wait")
    database.check_objects(kinds)
    database.helm("uninstall", "database", "--wait")
    assert sorted(database.check_objects(kinds)) == [
        f"PersistentVolumeClaim/data-database-{ordinal}" for ordinal in range(3)
    ]


def _password(one: One) -> bytes:
    return base64.b64decode(one.get("secret", "database")["data"]["password"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path) as server:
        yield server


def test_webhooks_of_a_chart_change_and_refuse_its_objects(
    both_clusters: tuple[Server, Server], served: WebhookServer
) -> None:
    served.at("/mutate", lambda _: patched({"op": "add", "path": "/data/injected", "value": "yes"}))
    served.at(
        "/validate",
        lambda request: (
            {
                "allowed": request["object"]["data"]["color"] != "red",
                "status": {"message": "red is forbidden"},
            }
        ),
    )
    webhooks = Release(both_clusters, "webhooks")
    where = f"--set=caBundle={served.ca_bundle},url=https://127.0.0.1:{served.port}"
    cluster_wide = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    webhooks.install(where)
    webhooks.check_objects(cluster_wide, "-l", "app.kubernetes.io/name=webhooks")
    assert webhooks.check_objects("configmaps")["ConfigMap/webhooks"]["data"] == {"color": "green"}
    webhooks.upgrade(where, "--set=color=blue")
    changed = webhooks.check_objects("configmaps")
    assert changed["ConfigMap/webhooks"]["data"] == {"color": "blue", "injected": "yes"}
    refused = webhooks.upgrade(where, "--set=color=red", code=1)
    assert "red is forbidden" in refused.err
    webhooks.upgrade(where, "--set=color=red", "--rollback-on-failure", code=1)
    webhooks.check_objects("configmaps")
    # The configuration comes last: the webhook that cannot be reached concerns the next upgrade.
    webhooks.upgrade("--set=url=https://127.0.0.1:1,color=yellow")
    webhooks.upgrade("--set=url=https://127.0.0.1:1,failurePolicy=Ignore,color=green", code=1)
    webhooks.check_objects("configmaps")
    webhooks.helm("uninstall", "webhooks", "--wait")
    assert webhooks.check_objects(cluster_wide, "-l", "app.kubernetes.io/name=webhooks") == {}
