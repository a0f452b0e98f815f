"""A Helm release on two clusters: every command and every object that it leaves must be the same.

What must differ is taken out: UIDs, versions, times, addresses, what controllers write into `status`, and what Helm
itself packs into the Secret of a revision.
"""

from __future__ import annotations

import difflib
import itertools
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.kit.real_parts import Server
from tests.real.clients.pair import One, Pair, Said
from tests.real.clients.readings import normalise

CHARTS = Path(__file__).parent / "charts"
# More than any step needs on a busy machine. Steps that are to fail by waiting name a shorter time.
TIMEOUT = "--timeout=240s"

_NUMBERS = itertools.count(1)
_OURS_IN_METADATA = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_CONTROLLERS = ("kube-controller-manager", "podlife")
_OF_EVERY_NAMESPACE = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}


class Release:
    """A chart of ours, installed under its name in a new namespace of both clusters."""

    def __init__(self, clusters: tuple[Server, Server], chart: str) -> None:
        theirs, ours = clusters
        self.name = chart
        self.chart = str(CHARTS / chart)
        self.pair = Pair(theirs, ours, f"{chart}-{next(_NUMBERS)}")

    def install(self, *flags: str, code: int = 0) -> Said:
        return self.helm("install", self.name, self.chart, "--create-namespace", "--wait", *flags, code=code)

    def upgrade(self, *flags: str, code: int = 0) -> Said:
        return self.helm("upgrade", self.name, self.chart, "--wait", *flags, code=code)

    def helm(self, *arguments: str, code: int = 0) -> Said:
        """Both clusters' Helm says the same and ends with `code`; gives what ours said."""
        waits = "--wait" in arguments and not any(each.startswith("--timeout") for each in arguments)
        return self.pair(*arguments, *([TIMEOUT] if waits else []), code=code, program="helm")

    def kubectl(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        return self.pair(*arguments, code=code, **how)

    def check_objects(self, kinds: str, *flags: str) -> dict[str, Any]:
        """Both clusters have the same objects of these kinds, with the same owners of fields; gives ours, by name."""
        arguments = ("get", kinds, "-o", "json", "--show-managed-fields", *flags)
        ours, theirs = (_read(one, arguments) for one in (self.pair.ours, self.pair.theirs))
        difference = "\n".join(
            difflib.unified_diff(_lines(theirs), _lines(ours), "theirs", "ours", lineterm="", n=12)
        )
        assert not difference, difference
        return ours


def _read(one: One, arguments: tuple[str, ...]) -> dict[str, Any]:
    items = msgspec.json.decode(one(*arguments).out)["items"]
    readings = {
        f"{each['kind']}/{each['metadata']['name']}": _reading(each) for each in items if _is_ours(each)
    }
    return dict(sorted(readings.items()))


def _is_ours(item: dict[str, Any]) -> bool:
    return (item["kind"], item["metadata"]["name"]) not in _OF_EVERY_NAMESPACE


def _reading(item: dict[str, Any]) -> dict[str, Any]:
    metadata = item["metadata"]
    kept = {name: value for name, value in metadata.items() if name not in _OURS_IN_METADATA}
    kept["managers"] = sorted(filter(None, map(_manager, metadata.get("managedFields", []))))
    rest = {name: value for name, value in item.items() if name not in ("metadata", "status")}
    if rest.get("type") == "helm.sh/release.v1":
        del rest["data"]
        kept["labels"] = {**kept["labels"], "createdAt": "", "modifiedAt": ""}
    return {"metadata": kept, **rest}


def _manager(entry: dict[str, Any]) -> str:
    """Who owns what; empty for controllers, whose names and ways of writing differ."""
    if entry["manager"].startswith(_CONTROLLERS):
        return ""
    fields = msgspec.json.encode(entry["fieldsV1"], order="sorted").decode()
    return f"{entry['manager']} {entry['operation']} {entry.get('subresource', '')} {entry['apiVersion']} {fields}"


def _lines(readings: dict[str, Any]) -> list[str]:
    return normalise(yaml.safe_dump(readings, width=1000)).splitlines()
