"""Attacks on the page of a real cluster, in a real browser: nothing runs, nothing is done, nothing leaks."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from playwright.async_api import expect

from podlife.client import EVENTS, NAMESPACES, NODES, PODS, SECRETS, Client, Flags, load
from podlife.errors import NotFoundError
from tests.kit.agent_process import running_agent
from tests.kit.browser import PATIENCE_MS, Visit, chromium, visiting
from tests.kit.component_process import running
from tests.kit.objects import pod
from tests.kit.real_parts import Server
from tests.kit.ui_process import UiProcess
from tests.real.conftest import require

HOSTILE = "</pre><img src=http://evil.example/x onerror=\"document.title='owned'\"><script>alert(1)</script>"
SECRET = "swordfish-7"
POLICY = """
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules: [{name: ended, select: {phase: [Failed]}, ttlAfterFinished: 0s}]
"""
OBJECTS = f"""
pod:
  metadata:
    name: target
    labels: {{app: constructor}}
    annotations: {{note: &hostile {json.dumps(HOSTILE)}}}
    ownerReferences: [{{apiVersion: x/v1, kind: *hostile, name: *hostile, uid: u, controller: true}}]
  spec:
    nodeName: n1
    restartPolicy: Never
    containers:
    - name: app
      image: demo
      command: [sh, -c, 'echo "$0"; exit 1', *hostile]
      terminationMessagePolicy: FallbackToLogsOnError
      env: [{{name: KEY, valueFrom: {{secretKeyRef: {{name: key, key: key}}}}}}]
event: {{metadata: {{name: e}}, type: Warning, reason: *hostile, message: *hostile, source: {{component: *hostile}}}}
node: {{status: {{conditions: [{{type: Broken, status: "True", message: *hostile, reason: *hostile}}]}}}}
"""
GROUP = "rbac.authorization.k8s.io"
OTHER_PAGE = """async (home) => {
  const settled = (thing, good) => new Promise((yes, no) => { thing[good] = yes; thing.onerror = no; });
  const order = { method: "POST", credentials: "include", body: '{"digest":"","confirm":"yes"}' };
  const script = Object.assign(document.createElement("script"), { type: "module", src: `${home}static/store.js` });
  document.head.append(script);
  const tries = [
    fetch(`${home}api/plan`, { credentials: "include" }), fetch(`${home}api/sweep`, order),
    settled(new EventSource(`${home}api/stream`, { withCredentials: true }), "onopen"), settled(script, "onload"),
  ];
  return (await Promise.allSettled(tries)).map((each) => each.status);
}"""

expect.set_options(timeout=PATIENCE_MS)
_NUMBERS = itertools.count(1)


@pytest.fixture
async def victim(kube: Server, tmp_path: Path) -> AsyncIterator[tuple[Client, str]]:
    """A namespace with a node and a pod, where everything that may be free text is hostile."""
    require("chromium")
    home = f"attack-{next(_NUMBERS)}"
    async with Client.connect(load(Flags(kubeconfig=str(kube.kubeconfig)), {})) as client:
        with running_agent(tmp_path / "agent", kube.kubeconfig):
            await client.create(NAMESPACES, {"metadata": {"name": home}})
            await client.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"key": SECRET}}, home)
            made = yaml.safe_load(OBJECTS)
            target = await client.create(PODS, made["pod"], home)
            about = {"kind": "Pod", "namespace": home, "name": "target", "uid": target["metadata"]["uid"]}
            seen = {"involvedObject": about, "lastTimestamp": target["metadata"]["creationTimestamp"]}
            await client.create(EVENTS, made["event"] | seen, home)
            await client.patch(NODES, "n1", made["node"], subresource="status")
            yield client, home
        await client.delete(NODES, "n1")


@asynccontextmanager
async def looking(ui: UiProcess, *allowed: str) -> AsyncIterator[Visit]:
    """At the end: no dialog, no script of others, no request elsewhere, no complaint, not even of the policy."""
    async with chromium() as browser, visiting(browser, ui.address) as visit:
        visit.page.on("dialog", lambda dialog: visit.complaints.append(dialog.message))
        await expect(visit.page.locator("#connection")).to_have_text("live")
        yield visit
        assert await visit.page.locator("img, iframe, script:not([src*='/static/'])").count() == 0
        assert "owned" not in await visit.page.title()
        assert [
            each for each in visit.requests if not each.startswith((ui.address.partition("?")[0], "data:"))
        ] == []
        assert [each for each in visit.complaints if not any(text in each for text in allowed)] == []


async def test_text_of_the_cluster_is_never_markup_and_secrets_stay(
    kube: Server, victim: tuple[Client, str], tmp_path: Path
) -> None:
    client, home = victim
    policy = tmp_path / HOSTILE.replace("/", ":")
    policy.write_text(POLICY)
    flags = ["--kubeconfig", str(kube.kubeconfig), "-n", home, "--allow-actions", "--policy", str(policy)]
    with running(UiProcess(tmp_path, *flags, "--archive", str(tmp_path / "archive"))) as ui:
        async with looking(ui, "status of 404", "status of 400") as visit:
            page, panel = visit.page, visit.page.locator("#panel")
            await page.select_option("#group", "owner")
            await page.locator("#lanes-list button.pod", has_text="target").click()
            for tab, shown in (
                ("Timeline", "alert(1)"),
                ("Logs", HOSTILE),
                ("YAML", HOSTILE),
                ("Explain", "target"),
            ):
                await page.get_by_role("tab", name=tab).click()
                await expect(panel).to_contain_text(shown)
                assert SECRET not in await page.content()
            await page.locator("#mode-plan").click()
            await expect(page.locator("#plan-note")).to_contain_text("alert(1)")
            await page.locator("#plan-sweep").click()
            await page.locator("#sweep-answer").fill("yes")
            await page.keyboard.press("Enter")
            await expect(page.locator("#sweep-result")).to_contain_text("deleted: 1")
            await page.locator("#sweep-cancel").click()
            await page.get_by_role("tab", name="Archive").click()
            await expect(panel).to_contain_text("alert(1)")
            assert SECRET not in await page.content()
            with pytest.raises(NotFoundError):
                await client.get(PODS, "target", home)


async def test_other_pages_names_and_tokens_get_nothing(
    kube: Server, victim: tuple[Client, str], tmp_path: Path
) -> None:
    client, namespace = victim
    with running(UiProcess(tmp_path, "--kubeconfig", str(kube.kubeconfig), "--allow-actions")) as ui:
        home = ui.address.partition("?")[0]
        async with looking(ui) as visit:
            other = await visit.page.context.new_page()
            # Another port of this machine is the same site: the browser sends the cookie.
            await other.goto(kube.etcd_url + "/version")
            assert await other.evaluate(OTHER_PAGE, home) == ["rejected"] * 4
            for address, status in (
                (ui.address.replace("127.0.0.1", "evil.localhost"), 421),
                (home.replace("127.0.0.1", "evil.localhost"), 421),
                (re.sub("token=.", "token=", ui.address), 403),
            ):
                answer = await other.goto(address)
                assert answer is not None
                assert (answer.status, "set-cookie" in answer.headers) == (status, False)
            assert (await client.get(PODS, "target", namespace))["metadata"].get("deletionTimestamp") is None


async def test_who_may_read_the_pods_of_one_namespace_sees_those(
    kube: Server, victim: tuple[Client, str], tmp_path: Path
) -> None:
    client, home = victim
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    named, role = {"metadata": {"name": "reader"}}, {"apiGroup": GROUP, "kind": "Role", "name": "reader"}
    binding = {**named, "roleRef": role, "subjects": [{"kind": "User", "name": "nobody"}]}
    for what, body in (("roles", {**named, "rules": rules}), ("rolebindings", binding)):
        await client.request("POST", f"/apis/{GROUP}/v1/namespaces/{home}/{what}", body=body)
    await client.create(PODS, pod("unseen-pod"), "default")
    with running(UiProcess(tmp_path, "--kubeconfig", str(kube.kubeconfig_for("nobody")), "-n", home)) as ui:
        async with looking(ui, "status of 403") as visit:
            await visit.page.locator("#lanes-list button.pod", has_text="target").click()
            await expect(visit.page.locator("#banner-missing")).to_contain_text("nodes (403 Forbidden)")
            await visit.page.get_by_role("tab", name="Logs").click()
            await expect(visit.page.locator("#panel")).to_contain_text("forbidden")
            content = await visit.page.content()
            assert [each for each in ("unseen-pod", SECRET) if each in content] == []
    await client.delete(PODS, "unseen-pod", "default")
