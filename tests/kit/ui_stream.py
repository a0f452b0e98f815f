"""A server of the page's protocol that plays what a test says, without a cluster.

It serves the static files with the security headers of the real server, so that the browser reports every violation
of the policy. Times are seconds relative to now; `story` has one of everything (ui_story.yaml), `crowd` has thousands.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

import podlife
from podlife.clock import SystemClock

STATIC = Path(podlife.__file__).parent / "ui" / "static"
STORY = yaml.safe_load(Path(__file__).with_name("ui_story.yaml").read_text())
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
Life = dict[str, Any]


def at(seconds: float) -> int:
    """That many seconds after now, in the protocol's milliseconds."""
    return int((SystemClock().now().timestamp() + seconds) * 1000)


def pod(name: str, node: str = "node-a", **more: Any) -> Life:
    facts = {
        "kind": "pod",
        "ns": "default",
        "node": node,
        "owner": None,
        "labels": {"app": name.split("-", 1)[0]},
    }
    state = {"ready": "1/1", "restarts": 0, "deleted": None, "grace": None}
    return _life(name, facts | state | more)


def node(name: str, **more: Any) -> Life:
    facts = {"kind": "node", "ns": "", "segs": [(-900, "ready")], "taints": [], "cordoned": False}
    return _life(name, facts | {"conditions": {"Ready": "True", "MemoryPressure": "False"}} | more)


def _life(name: str, given: Life) -> Life:
    life: Life = {
        "uid": f"uid-{name}",
        "name": name,
        "to": None,
        "waits": "",
        "stuck": "",
        "marks": [],
        "next": [],
    } | given
    life["stage"] = given.get("stage", given["segs"][-1][1])
    life["segs"] = [[at(seconds), state] for seconds, state in given["segs"]]
    life["from"] = life["segs"][0][0]
    began = life.pop("began", None)
    marks = [*([] if began is None else _began(began)), *life["marks"]]
    life["marks"] = [[at(seconds), *rest] for seconds, *rest in marks]
    life["next"] = [_prediction(*each) for each in life["next"]]
    for field in ("to", "deleted"):
        if life.get(field) is not None:
            life[field] = at(life[field])
    return life


def _began(seconds: float) -> list[tuple[float, str, str, str]]:
    return [
        (seconds, "created", "created", "replicaset-controller"),
        (seconds + 1, "scheduled", "assigned to the node", "default-scheduler"),
        (seconds + 5, "started", "container app started", "kubelet"),
    ]


def _prediction(seconds: float | None, who: str, what: str, state: str = "due", since: float = -60) -> Life:
    due = None if seconds is None else at(seconds)
    return {"since": at(since), "until": None, "at": due, "who": who, "what": what, "state": state}


def story() -> list[Life]:
    """A Deployment, a crash loop, deletions, a finalizer, and a node that fell silent."""
    return [*(node(**each) for each in STORY["nodes"]), *(pod(**each) for each in STORY["pods"])]


def crowd(nodes: int = 1000, pods: int = 10_000) -> list[Life]:
    states = ["ready", "unready", "pending", "starting", "terminating", "held", "succeeded", "failed"]
    chosen = random.Random(7).choices(states, [86, 2, 2, 2, 2, 1, 3, 2], k=pods)
    found = [node(f"node-{i}") for i in range(nodes)]
    for i, state in enumerate(chosen):
        segs = [(-600, "pending"), (-590, "starting"), (-580, "ready"), (-50, state)]
        owner = {"kind": "Deployment", "name": f"app-{i % 200}"}
        found.append(pod(f"app-{i % 200}-{i}", f"node-{i % nodes}", segs=segs, owner=owner, began=-600))
    return found


class UiStream:
    """What the page receives. A test changes lives with `push`, cuts connections with `cut`, and reads `sweeps`."""

    def __init__(self, lives: Iterable[Life], hello: Life | None = None) -> None:
        self.lives = {life["uid"]: life for life in lives}
        self.hello = {"mode": "live", "started": at(-600), "missing": [], "actions": False, "policy": ""} | (
            hello or {}
        )
        self.status = 200
        self.heartbeat = {"live": True, "missing": self.hello["missing"]}
        self.sweeps: list[Life] = []
        self.log = "line 4\nline 5\n\x1b[31m<img src=x onerror=alert(1)>\x1b[0m\n"
        self.connections = 0
        self.url = ""
        self._queues: set[asyncio.Queue[tuple[str, Any] | None]] = set()

    def push(self, *lives: Life) -> None:
        self.lives |= {life["uid"]: life for life in lives}
        self.send("lives", list(lives))

    def send(self, event: str, data: Any) -> None:
        for queue in self._queues:
            queue.put_nowait((event, data))

    def cut(self) -> None:
        for queue in self._queues:
            queue.put_nowait(None)

    def _picture(self) -> Sequence[tuple[str, Any]]:
        lives = list(self.lives.values())
        chunks = [("lives", lives[i : i + 500]) for i in range(0, len(lives), 500)]
        hello = {"version": 1, "cluster": "https://127.0.0.1:6443", "now": at(0), **self.hello}
        return [("hello", hello), *chunks, ("synced", {"now": hello["now"]})]

    async def stream(self, request: web.Request) -> web.StreamResponse:
        if self.status != 200:
            return web.json_response({"error": "no cookie"}, status=self.status)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        queue: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue(10_000)
        for message in self._picture():
            queue.put_nowait(message)
        self._queues.add(queue)
        self.connections += 1
        try:
            while (next_message := await self._next(queue)) is not None:
                event, data = next_message
                await response.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
        except ConnectionResetError:
            pass
        finally:
            self._queues.discard(queue)
        return response

    async def _next(self, queue: asyncio.Queue[tuple[str, Any] | None]) -> tuple[str, Any] | None:
        try:
            async with asyncio.timeout(5):
                return await queue.get()
        except TimeoutError:
            return "status", {"now": at(0), **self.heartbeat}

    async def api(self, request: web.Request) -> web.Response:
        what = request.path.rpartition("/")[2]
        if what == "explain":
            return web.json_response(STORY["explain"] | {"name": request.path.split("/")[-2]})
        if what == "plan":
            later = [each | {"at": at(each["at"])} for each in STORY["plan"]["later"]]
            return web.json_response(STORY["plan"] | {"at": at(0), "later": later})
        if what == "yaml":
            return web.Response(text="apiVersion: v1\nkind: Pod\nmetadata:\n  name: <b>bold</b>\n")
        if what == "log" and request.query.get("container") == "app":
            return web.Response(text=self.log)
        if what == "log":
            error = "a container name must be specified for pod x, choose one of: [app proxy]"
            return web.json_response({"error": error}, status=400)
        return web.json_response({"error": "no archive: name one with --archive"}, status=404)

    async def sweep(self, request: web.Request) -> web.Response:
        self.sweeps.append(await request.json())
        outcome = {"outcomes": {"deleted": 1}, "failures": [], "held": 0, "left": 0, "complete": True}
        return web.json_response(outcome)


async def _page(request: web.Request) -> web.Response:
    path = STATIC / Path(request.match_info.get("name", "index.html")).name
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
    return web.Response(
        body=path.read_bytes(), content_type=TYPES[path.suffix], charset="utf-8", headers=headers
    )


@asynccontextmanager
async def serving(ui: UiStream) -> AsyncIterator[UiStream]:
    app = web.Application()
    app.router.add_get("/", _page)
    app.router.add_get("/static/{name}", _page)
    app.router.add_get("/api/stream", ui.stream)
    app.router.add_post("/api/sweep", ui.sweep)
    app.router.add_get("/api/{rest:.*}", ui.api)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ui.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield ui
    finally:
        ui.cut()
        await runner.cleanup()
