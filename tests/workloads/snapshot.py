"""What is left in a namespace, in a form in which two runs can be compared.

Taken out is only what must differ: times become `<time>`, UIDs the object they mean, random suffixes `<random>`, the
hashes of templates and revisions `<hash-1>` in the order of their revisions, start times in names `<minutes>`, the
namespace `<namespace>`;
resourceVersion and managedFields are left out, and the conditions of a Deployment are in the order of their types: each
is put last when it changes, so where two states follow on each other fast it is a race whether the first was ever
noticed. Objects that are the same after that (the pods of a ReplicaSet) are one entry with a count. Events are a set:
those of type Normal with how often they came, warnings without, since they come again with every retry.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from podlife.client import EVENTS, NODES
from tests.workloads.observatory import FOLLOWED, Object, Observatory

Snapshot = dict[str, list[Object]]

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM = re.compile(rf"-[{_ALPHABET}]{{5}}(?![-\w])")
_HASH = re.compile(rf"-[{_ALPHABET}]{{7,10}}(?![\w])")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
# A Job of a CronJob is called after the minute of its start, which an event and an annotation tell in other forms.
_MINUTES = re.compile(r"-\d{8}(?!\d)")
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=[+-]\d\d:\d\d)")
_MAIL_TIME = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH_LABELS = ("pod-template-hash", "controller.kubernetes.io/hash", "controller-revision-hash")
_NOT_COMPARED = ("resourceVersion", "managedFields")


def take(seen: Observatory, namespace: str, ignoring: Mapping[str, str]) -> Snapshot:
    """What the observatory holds of the namespace. `ignoring`: see `tests.workloads.scenario`."""
    compared = [ref for ref in FOLLOWED if ref not in (EVENTS, NODES)]
    objects = [
        obj
        for ref in compared
        for obj in seen.objects(ref, namespace).values()
        # Every namespace has it where its controller runs.
        if obj["metadata"]["name"] != "kube-root-ca.crt"
    ]
    names = _Names(namespace, objects)
    texts = Counter(_text(names.blank(_without(obj, ignoring))) for obj in objects)
    entries = [{"count": count, **json.loads(text)} for text, count in texts.items()]
    entries.sort(key=lambda each: (each["kind"], each["metadata"]["name"], _text(each)))
    return {"objects": entries, "events": _events(seen.objects(EVENTS, namespace).values(), names, ignoring)}


def difference(expected: Snapshot, found: Snapshot) -> str:
    """Empty when there is none; else what was expected (-) and found (+), with what stands around it."""
    before, after = (_shown(each).splitlines() for each in (expected, found))
    return "\n".join(difflib.unified_diff(before, after, "expected", "found", lineterm="", n=12))


def _shown(snapshot: Snapshot) -> str:
    return json.dumps(snapshot, indent=1, sort_keys=True)


class _Names:
    """What stands for the names that no two runs share."""

    def __init__(self, namespace: str, objects: Iterable[Object]) -> None:
        self._namespace = namespace
        self._known: dict[str, str] = {}
        hashed = [obj for obj in objects if obj["kind"] in ("ReplicaSet", "ControllerRevision")]
        hashed.sort(key=lambda obj: (obj["kind"], _revision(obj), _text(self.blank(obj))))
        for obj in hashed:
            if hash_ := _hash_of(obj):
                self._known.setdefault(hash_, f"<hash-{len(self._known) + 1}>")
        for obj in objects:
            metadata = obj["metadata"]
            name = self.blank(metadata["name"])
            self._known[metadata["uid"]] = f"<uid of {obj['kind']} {name}>"

    def blank(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.blank(key): self.blank(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.blank(each) for each in value]
        return self._blank_text(value) if isinstance(value, str) else value

    def _blank_text(self, text: str) -> str:
        for name, shown in self._known.items():
            text = text.replace(name, shown)
        text = text.replace(self._namespace, "<namespace>")
        text = _UID.sub("<uid>", _TIME.sub("<time>", text))
        text = _MINUTES.sub("-<minutes>", _LOCAL_TIME.sub("<time>", _MAIL_TIME.sub("<time>", text)))
        return _HASH.sub("-<hash>", _RANDOM.sub("-<random>", text))


def _revision(obj: Object) -> int:
    annotations = obj["metadata"].get("annotations") or {}
    return int(obj.get("revision") or annotations.get("deployment.kubernetes.io/revision") or 0)


def _hash_of(obj: Object) -> str:
    labels = obj["metadata"].get("labels") or {}
    hash_: str = next((labels[label] for label in _HASH_LABELS if label in labels), "")
    # A StatefulSet's revision is labelled with what its template has, which is no hash.
    return hash_ if hash_ and obj["metadata"]["name"].endswith(hash_) else ""


def _without(obj: Object, ignoring: Mapping[str, str]) -> Object:
    metadata = {key: each for key, each in obj["metadata"].items() if key not in _NOT_COMPARED}
    copied: Object = json.loads(_text({**obj, "metadata": metadata}))
    if obj["kind"] == "Deployment":
        (copied.get("status") or {}).get("conditions", []).sort(key=lambda each: each["type"])
    for path in ignoring:
        kind, _, field = path.partition(".")
        if kind == obj["kind"] and field:
            _drop(copied, field.split("."))
    return copied


def _drop(value: Any, path: list[str]) -> None:
    first, *rest = path
    if isinstance(value, list) and first == "*":
        for each in value:
            _drop(each, rest)
    elif isinstance(value, dict) and first in value:
        if rest:
            _drop(value[first], rest)
        else:
            del value[first]


def _events(events: Iterable[Object], names: _Names, ignoring: Mapping[str, str]) -> list[Object]:
    counts: Counter[str] = Counter()
    for event in events:
        if "Event" in ignoring or f"Event.{event['reason']}" in ignoring:
            continue
        about = event["involvedObject"]
        told = {
            "object": f"{about['kind']} {about['name']}",
            "type": event["type"],
            "reason": event["reason"],
            "message": _message(event),
            "component": (event.get("source") or {}).get("component", ""),
        }
        counts[_text(names.blank(told))] += event.get("count") or 1
    entries = [
        {**json.loads(text), **({"count": count} if '"Normal"' in text else {})}
        for text, count in counts.items()
    ]
    return sorted(entries, key=_text)


def _message(event: Object) -> str:
    message: str = event.get("message", "")
    # Whether a warning has come often enough to be aggregated is a matter of how long one looks on.
    return message.removeprefix("(combined from similar events): ") if event["type"] == "Warning" else message


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
