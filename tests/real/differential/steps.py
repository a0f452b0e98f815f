"""The table's vocabulary: a step is one request with the code that the real server answers it with (0 for a step
that was drawn at random: whatever it answers).

An area is a sequence of steps with a namespace of its own. What one answer gave (a UID, a resourceVersion)
can be kept under a name and stands as `${name}` in the path, the query, the headers and the body of later
steps. `${ns}` is the area's namespace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True)
class Step:
    area: str
    name: str
    method: str
    path: str
    code: int
    body: Any = None
    who: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)
    # Variable -> where its value stands in the answer, as a dotted path.
    keep: Mapping[str, str] = field(default_factory=dict)
    # Reduces a body to what both servers can have in common, before it is compared.
    pick: Callable[[Any], Any] | None = None
    # What the server makes up at random and shows in a message, as a regular expression.
    random: str = ""
    # Repeats the request until the body is so, for what happens in the background; at most ten seconds.
    until: Callable[[Any], bool] | None = None
    # The real server tells several errors in the order of a Go map.
    unordered: bool = False

    @property
    def id(self) -> str:
        return f"{self.area}/{self.name}"

    @property
    def is_watch(self) -> bool:
        return "watch=true" in self.path

    def payload(self, variables: Mapping[str, str]) -> bytes | None:
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body, separators=(",", ":"))
        return fill(text, variables).encode()


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Put the kept values in. One that was never kept shows as itself, so that the step differs visibly."""
    return _VARIABLE.sub(lambda match: variables.get(match[1], f"<no-{match[1]}>"), text)


class Area:
    """Collects steps. The verbs take the path after the area's namespace has been put in."""

    def __init__(self, name: str, *, namespace: bool = True) -> None:
        self.name = name
        self.namespace = f"diff-{name}"
        self.steps: list[Step] = []
        if namespace:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
            self.post("namespace", "/api/v1/namespaces", body)

    def add(self, name: str, method: str, path: str, code: int, body: Any = None, **more: Any) -> None:
        if any(step.name == name for step in self.steps):
            raise ValueError(f"{self.name} has two steps called {name}")
        self.steps.append(Step(self.name, name, method, path, code, body, **more))

    def get(self, name: str, path: str, code: int = 200, **more: Any) -> None:
        self.add(name, "GET", path, code, **more)

    def post(self, name: str, path: str, body: Any, code: int = 201, **more: Any) -> None:
        self.add(name, "POST", path, code, body, **more)

    def put(self, name: str, path: str, body: Any, code: int = 200, **more: Any) -> None:
        self.add(name, "PUT", path, code, body, **more)

    def delete(self, name: str, path: str, body: Any = None, code: int = 200, **more: Any) -> None:
        self.add(name, "DELETE", path, code, body, **more)

    def patch(self, name: str, kind: str, path: str, body: Any, code: int = 200, **more: Any) -> None:
        headers = {"Content-Type": PATCHES[kind], **more.pop("headers", {})}
        self.add(name, "PATCH", path, code, body, headers=headers, **more)

    def watch(self, name: str, path: str, code: int = 200, **more: Any) -> None:
        """Everything that a watch of one second brings."""
        joint = "&" if "?" in path else "?"
        self.add(name, "GET", f"{path}{joint}watch=true&timeoutSeconds=1", code, **more)
