"""Attacks on the page of a real cluster, in a real browser: nothing runs, nothing is done, nothing leaks."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from playwright.async_api import Page, expect

from podlife.client import EVENTS, NAMESPACES, NODES, PODS, SECRETS, Client, Flags, load
from podlife.errors import NotFoundError
from tests.kit.agent_process import running_agent
from tests.kit.browser import PATIENCE_MS, chromium, visiting
from tests.kit.component_process import running
from tests.kit.objects import pod
from tests.kit.real_parts import Server
from tests.kit.ui_process import UiProcess
from tests.real.conftest import require

HOSTILE = "</pre><img src=http://evil.example/x onerror=\"document.title='owned'\"><script>alert(1)</script>"
SECRET, GROUP = "swordfish-7", "rbac.authorization.k8s.io"
POLICY = (
    "{apiVersion: podlife.dev/v1, kind: PodGCPolicy, rules: [{name: x, select: {}, ttlAfterFinished: 0s}]}"
)
OBJECTS = f"""
pod:
  metadata:
    name: target
    annotations: {{note: &hostile {json.dumps(HOSTILE)}}}
    ownerReferences: [{{apiVersion: x/v1, kind: *hostile, name: *hostile, uid: u, controller: true}}]
  spec:
    nodeName: n1
    restartPolicy: Never
    containers:
    - {{name: app, image: demo, terminationMessagePolicy: FallbackToLogsOnError,
       env: [{{name: KEY, valueFrom: {{secretKeyRef: {{name: key, key: key}}}}}}],
       command: [sh, -c, 'echo "$0"; exit 1', *hostile]}}
event: {{metadata: {{name: e}}, type: Warning, reason: *hostile, message: *hostile, source: {{component: *hostile}}}}
node: {{status: {{conditions: [{{type: Broken, status: "True", message: *hostile, reason: *hostile}}]}}}}
"""
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
Looking = Callable[..., AbstractAsyncContextManager[tuple[Page, str]]]

expect.set_options(timeout=PATIENCE_MS)
_NUMBERS = itertools.count(1)


@dataclass
class Victim:
    client: Client
    namespace: str
    looking: Looking


@pytest.fixture
async def victim(kube: Server, tmp_path: Path) -> AsyncIterator[Victim]:
    """A namespace with a pod and a node, where everything that may be free text is hostile."""
    require("chromium")
    home, made = f"attack-{next(_NUMBERS)}", yaml.safe_load(OBJECTS)

    @asynccontextmanager
    async def looking(who: str, *flags: str) -> AsyncIterator[tuple[Page, str]]:
        """At the end: no dialog, no script of others, no request elsewhere, no violation of the page's policy."""
        ui = UiProcess(tmp_path, "--kubeconfig", str(kube.kubeconfig_for(who)), "-n", home, *flags)
        async with chromium() as browser:
            with running(ui):
                async with visiting(browser, ui.address) as visit:
                    visit.page.on("dialog", lambda dialog: visit.complaints.append(dialog.message))
                    await visit.page.locator("#lanes-list button.pod", has_text="target").click()
                    yield visit.page, ui.address
                    assert await visit.page.locator("img, iframe, script:not([src^='static/'])").count() == 0
                    assert SECRET not in await visit.page.content()
                    assert "owned" not in await visit.page.title()
                    own = (ui.address.partition("?")[0], "data:")
                    assert [each for each in visit.requests if not each.startswith(own)] == []
                    assert [
                        each for each in visit.complaints if not re.search("status of 40[034]", each)
                    ] == []

    async with Client.connect(load(Flags(kubeconfig=str(kube.kubeconfig)), {})) as client:
        with running_agent(tmp_path / "agent", kube.kubeconfig):
            await client.create(NAMESPACES, {"metadata": {"name": home}})
            await client.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"key": SECRET}}, home)
            meta = (await client.create(PODS, made["pod"], home))["metadata"]
            about = {"kind": "Pod", "namespace": home, "name": "target", "uid": meta["uid"]}
            seen = {"involvedObject": about, "lastTimestamp": meta["creationTimestamp"]}
            await client.create(EVENTS, made["event"] | seen, home)
            await client.patch(NODES, "n1", made["node"], subresource="status")
            yield Victim(client, home, looking)
        await client.delete(NODES, "n1")


async def test_text_of_the_cluster_is_never_markup_and_secrets_stay(victim: Victim, tmp_path: Path) -> None:
    policy = tmp_path / HOSTILE.replace("/", ":")
    policy.write_text(POLICY)
    flags = ("--allow-actions", "--policy", str(policy), "--archive", str(tmp_path / "archive"))
    async with victim.looking("admin", *flags) as (page, _):
        panel = page.locator("#panel")
        for tab, shown in (
            ("Timeline", "alert(1)"),
            ("Logs", HOSTILE),
            ("YAML", HOSTILE),
            ("Explain", "target"),
        ):
            await page.get_by_role("tab", name=tab).click()
            await expect(panel).to_contain_text(shown)
            assert SECRET not in await page.content()
        await page.select_option("#group", "owner")
        await page.locator("#mode-plan").click()
        await expect(page.locator("#plan-note")).to_contain_text("alert(1)")
        await page.locator("#plan-sweep").click()
        await page.locator("#sweep-answer").fill("yes")
        await page.keyboard.press("Enter")
        await expect(page.locator("#sweep-result")).to_contain_text("deleted: 1")
        await page.locator("#sweep-cancel").click()
        await page.get_by_role("tab", name="Archive").click()
        await expect(panel).to_contain_text("alert(1)")
        with pytest.raises(NotFoundError):
            await victim.client.get(PODS, "target", victim.namespace)


async def test_other_pages_names_and_tokens_get_nothing(victim: Victim, kube: Server) -> None:
    async with victim.looking("admin", "--allow-actions") as (page, address):
        other, home = await page.context.new_page(), address.partition("?")[0]
        # Another port of this machine is the same site: the browser sends the cookie.
        await other.goto(kube.etcd_url + "/version")
        assert await other.evaluate(OTHER_PAGE, home) == ["rejected"] * 4
        foreign = [(each.replace("127.0.0.1", "evil.localhost"), 421) for each in (address, home)]
        for tried, status in (*foreign, (re.sub("token=.", "token=", address), 403)):
            answer = await other.goto(tried)
            assert answer is not None
            assert (answer.status, "set-cookie" in answer.headers) == (status, False)
        kept = await victim.client.get(PODS, "target", victim.namespace)
        assert "deletionTimestamp" not in kept["metadata"]


async def test_who_may_read_the_pods_of_one_namespace_sees_those(victim: Victim) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    named, role = {"metadata": {"name": "reader"}}, {"apiGroup": GROUP, "kind": "Role", "name": "reader"}
    binding = {**named, "roleRef": role, "subjects": [{"kind": "User", "name": "nobody"}]}
    for what, body in (("roles", {**named, "rules": rules}), ("rolebindings", binding)):
        path = f"/apis/{GROUP}/v1/namespaces/{victim.namespace}/{what}"
        await victim.client.request("POST", path, body=body)
    await victim.client.create(PODS, pod("unseen-pod"), "default")
    async with victim.looking("nobody") as (page, _):
        await expect(page.locator("#banner-missing")).to_contain_text("nodes (403 Forbidden)")
        await page.get_by_role("tab", name="Logs").click()
        await expect(page.locator("#panel")).to_contain_text("forbidden")
        assert "unseen-pod" not in await page.content()
    await victim.client.delete(PODS, "unseen-pod", "default")
