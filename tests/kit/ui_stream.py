"""The page's server with a feed and a cluster that a test plays.

Times are seconds relative to now; `story` has one of everything (ui_story.yaml), `crowd` has thousands.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import encode
from podlife.client import LogOptions
from podlife.clock import SystemClock
from podlife.errors import ApiError, NotFoundError
from podlife.ui.access import Access
from podlife.ui.feed import CHUNK, STATUS_SECONDS, VERSION
from podlife.ui.journal import Journal
from podlife.ui.server import PageServer

STORY = yaml.safe_load(Path(__file__).with_name("ui_story.yaml").read_text())
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
    # Stuck since its last change.
    life["stuck"] = [[life["segs"][-1][0], life["stuck"]]] if life["stuck"] else []
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
    missed = due if state == "missed" else None
    return {
        "since": at(since),
        "until": None,
        "at": due,
        "who": who,
        "what": what,
        "state": state,
        "missed": missed,
    }


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
    """The feed and the cluster of a page. A test changes lives with `push`, makes streams fall behind with `cut`, ends
    the server with `stop`, and reads `sweeps`."""

    is_complete = True

    def __init__(self, lives: Iterable[Life], hello: Life | None = None) -> None:
        self.lives = {life["uid"]: life for life in lives}
        self.about: Life = {
            "mode": "live",
            "started": at(-600),
            "missing": [],
            "actions": False,
            "policy": "",
        }
        self.about |= {"version": VERSION, "cluster": "https://127.0.0.1:6443", **(hello or {})}
        self.heartbeat = {"live": True, "missing": self.about["missing"]}
        self.journal = Journal()
        self.sweeps: list[str] = []
        self.archive: dict[str, Any] = {}
        self.explained: dict[str, Any] = {}
        self.log_error: ApiError | None = None
        # How often everything was sent.
        self.greetings = 0
        self.access = Access("127.0.0.1", 0)
        self._serving = AsyncExitStack()

    # The feed

    def hello(self) -> Life:
        self.greetings += 1
        return {"now": at(0), **self.about}

    def now(self) -> int:
        return int(self.about.get("now", at(0)))

    def chunks(self) -> Iterator[bytes]:
        lives = list(self.lives.values())
        return (encode(lives[place : place + CHUNK]) for place in range(0, len(lives), CHUNK))

    def push(self, *lives: Life) -> None:
        self.lives |= {life["uid"]: life for life in lives}
        self.journal.publish("lives", encode(lives))

    def beat(self) -> None:
        self.journal.publish("status", encode({"now": self.now(), **self.heartbeat}))

    def cut(self) -> None:
        """Every reader is too far behind to go on."""
        for _ in range(30):
            self.beat()

    async def run(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(STATUS_SECONDS)

    # The cluster

    async def explain_pod(self, namespace: str, name: str, uid: str = "") -> Life:
        found = STORY["explain"] | {"name": name} | self.explained
        archived = f"archived before its deletion; `podlife archive show {uid}`"
        return found | {"timeline": [{"what": archived}] if uid in self.archive else []}

    async def explain_node(self, name: str) -> Life:
        return await self.explain_pod("", name)

    async def yaml(self, *_: Any) -> str:
        return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: <b>bold</b>\n"

    async def archived(self, namespace: str, name: str, uid: str = "") -> Life:
        if uid not in self.archive:
            raise NotFoundError("no archive: name one with --archive")
        found: Life = self.archive[uid]
        return found

    async def log(self, namespace: str, name: str, options: LogOptions, *_: Any) -> AsyncIterator[bytes]:
        if self.log_error is not None:
            raise self.log_error
        if options.container != "app":
            raise ApiError(
                "a container name must be specified for pod x, choose one of: [app proxy]", code=400
            )
        yield b"line 4\nline 5\n\x1b[31m<img src=x onerror=alert(1)>\x1b[0m\n"

    async def plan(self) -> Life:
        later = [each | {"at": at(each["at"])} for each in STORY["plan"]["later"]]
        planned: Life = STORY["plan"] | {"at": at(0), "later": later}
        return planned

    async def sweep(self, digest: str) -> Life:
        self.sweeps.append(digest)
        return {"outcomes": {"deleted": 1}, "failures": [], "held": 0, "left": 0, "complete": True}

    # The server

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.access.port}/"

    async def start(self) -> None:
        """Serve; after a `stop` as another process at the same address, with the same token and frames of its own."""
        cluster: Any = None if self.about["mode"] == "replay" else self
        self.journal = Journal(most_frames=20)
        server = PageServer(self, lambda: self.access, cluster, allows_actions=bool(self.about["actions"]))
        port = await self._serving.enter_async_context(server.serving("127.0.0.1", (self.access.port,), None))
        self.access = replace(self.access, port=port)

    async def stop(self) -> None:
        await self._serving.aclose()


@asynccontextmanager
async def serving(ui: UiStream) -> AsyncIterator[UiStream]:
    await ui.start()
    beating = spawn(ui.run(), name="status", on_failure=lambda _: None)
    try:
        yield ui
    finally:
        await cancel_and_wait(beating)
        await ui.stop()
