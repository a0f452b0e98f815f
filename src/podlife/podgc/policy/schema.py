"""The JSON Schema of a policy file, for editors.

It covers keys, types and formats; contradictions between keys are found by the parser, whose patterns it shares. A test
keeps docs/policy.schema.json equal to `policy_schema`.
"""

from __future__ import annotations

from typing import Any

from podlife.api.durations import DURATION_WITH_DAYS
from podlife.podgc.policy.model import KeepOrder, Per
from podlife.podgc.policy.parse import API_VERSION, KIND
from podlife.podgc.policy.parse.guards import DAYS
from podlife.podgc.policy.parse.numbers import CLOCK, SHARE
from podlife.podgc.policy.parse.selectors import PHASES

Schema = dict[str, Any]
_DAY = "|".join(DAYS)
_NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_NAMESPACE = r"^[-a-z0-9*?]{1,63}$"
_NODE = r"^[-.a-z0-9*?]{1,253}$"
_KIND = r"^[A-Za-z0-9*?]{1,63}$"
_REASON = r"^[^\s\[\]{}|^$!]{1,128}$"


def policy_schema() -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "podlife pod garbage collector policy",
        **_mapping(
            "Which pods are collected, when, and within which limits.",
            {
                "apiVersion": {"const": API_VERSION},
                "kind": {"const": KIND},
                "upstream": _upstream(),
                "protect": _protect(),
                "rules": _list("A pod has one rule: the first that selects it.", _ref("rule"), 0),
                "guards": _guards(),
            },
            ["apiVersion", "kind"],
        ),
        "$defs": {
            "duration": {
                "description": "A duration: 40s, 1h30m, 7d.",
                "anyOf": [{"type": "string", "pattern": DURATION_WITH_DAYS}, {"const": 0}],
            },
            "share": _text("A percentage: 50%.", SHARE),
            "labels": _text('A label selector as for kubectl -l: "app in (a, b),tier!=db".'),
            "namespace": _text("A namespace; may contain the wildcards * and ?.", _NAMESPACE),
            "rule": _rule(),
            "selector": _selector(),
            "window": _window(),
        },
    }


def _ref(name: str, description: str = "") -> Schema:
    return {"$ref": f"#/$defs/{name}"} | ({"description": description} if description else {})


def _mapping(description: str, properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    needed = {"required": required} if required else {}
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        **needed,
        "additionalProperties": False,
    }


def _list(description: str, items: Schema, least: int = 1) -> Schema:
    few = {"minItems": least} if least else {}
    return {"description": description, "type": "array", "items": items, **few}


def _text(description: str, pattern: str = r"\S") -> Schema:
    return {"description": description, "type": "string", "pattern": pattern}


def _number(description: str, least: int) -> Schema:
    return {"description": description, "type": "integer", "minimum": least}


def _truth(description: str, default: bool) -> Schema:
    return {"description": description, "type": "boolean", "default": default}


def _upstream() -> Schema:
    on = _truth("Whether to collect pods for this reason.", True)

    def reason(description: str, more: dict[str, Schema]) -> Schema:
        return _mapping(description, {"enabled": on, **more}) | {"minProperties": 1}

    threshold = _number("Maximum number of ended pods that no rule selects; 0 keeps all.", 0)
    quarantine = _ref("duration", "How long a node must be missing.")
    return _mapping(
        "Reasons of kube-controller-manager; the flags are the defaults.",
        {
            "terminated": reason("Too many ended pods.", {"threshold": threshold}),
            "outOfService": reason("Terminating on an out-of-service node.", {}),
            "orphaned": reason("The node no longer exists.", {"quarantine": quarantine}),
            "unscheduled": reason("Terminating and never scheduled.", {}),
        },
    )


def _protect() -> Schema:
    return _mapping(
        "Pods that are not collected for any reason.",
        {
            "namespaces": _list("All pods of these namespaces.", _ref("namespace"), 0),
            "labels": _list("Pods that match one of these selectors.", _ref("labels"), 0),
            "annotations": _list(
                "Pods with one of these annotations.", _text("KEY or KEY=VALUE.", r"^[^=\s]+(=[\s\S]*)?$"), 0
            ),
            "maxKeepUntil": _ref(
                "duration",
                "Maximum time after its end that the annotation podlife.dev/keep-until keeps a pod; 0 ignores it.",
            ),
        },
    )


def _rule() -> Schema:
    keep = _mapping(
        "Keep the youngest pods of each group.",
        {
            "count": _number("Number of pods to keep per group.", 0),
            "per": {
                "description": "How to group pods.",
                "enum": [str(each) for each in Per],
                "default": str(Per.CLUSTER),
            },
            "orderBy": {
                "description": "Which time decides who is youngest.",
                "enum": [str(each) for each in KeepOrder],
                "default": str(KeepOrder.COMPLETION),
            },
        },
        ["count"],
    )
    limits = ("keep", "ttlAfterFinished", "maxTerminating")
    rule = _mapping(
        "Selected pods and their limits.",
        {
            "name": _text("Name in plans, events and metrics.", _NAME),
            "select": _ref("selector", "Which pods; default: every pod."),
            "exclude": {
                "description": "Which of them to leave alone; later rules do not apply to them either.",
                "anyOf": [_excluded(), {"type": "array", "items": _excluded()}],
            },
            "keep": keep,
            "ttlAfterFinished": _ref("duration", "Maximum time that a pod may stay after its end."),
            "collectWhen": {
                "description": "With keep and ttlAfterFinished: whether a pod must exceed all of them, or any.",
                "enum": ["all", "any"],
                "default": "all",
            },
            "maxTerminating": _ref(
                "duration", "Maximum time that a deleted pod may stay after its grace period."
            ),
            "waitForOwner": _ref(
                "duration", "Keep a pod until its owner has observed its end, at most this long after it."
            ),
            "enabled": _truth("Whether the rule is enabled.", True),
        },
        ["name"],
    )
    return rule | {"anyOf": [{"required": [limit]} for limit in limits]}


def _excluded() -> Schema:
    return {"allOf": [_ref("selector")], "minProperties": 1}


def _selector() -> Schema:
    names = _list("One of these namespaces.", _ref("namespace"))
    by_labels = _mapping("By name and by label.", {"names": names, "labels": _ref("labels")}) | {
        "minProperties": 1
    }
    return _mapping(
        "All fields must match.",
        {
            "namespaces": {"anyOf": [names, by_labels]},
            "labels": _ref("labels"),
            "ownerKind": _list(
                'The kind of the controller: Job, ReplicaSet; "none" is a pod without one.',
                _text("A kind; may contain the wildcards * and ?.", _KIND),
            ),
            "node": _list(
                "The name of its node.", _text("A name; may contain the wildcards * and ?.", _NODE)
            ),
            "phase": _list("Its phase.", {"enum": list(PHASES)}),
            "reason": _list(
                "Its reason: Evicted, NodeAffinity, Shutdown, OutOfcpu, Preempting.",
                _text("A reason; may contain the wildcards * and ?.", _REASON),
            ),
            "exitCode": _list("The exit code of one of its containers.", {"type": "integer"}),
        },
    )


def _guards() -> Schema:
    return _mapping(
        "Limits that hold whatever the rules say.",
        {
            "perMinute": _number("Maximum number of pods deleted in any minute.", 1),
            "perPass": _number("Maximum number of pods deleted in one pass.", 1),
            "shareOfNamespace": _ref(
                "share", "If a pass would delete more of a namespace, it deletes none there."
            ),
            "shareOfCluster": _ref("share", "If a pass would delete more of the cluster, it deletes none."),
            "shareAtLeast": _number("Shares do not apply up to this number of pods.", 0) | {"default": 10},
            "windows": _list("When pods may be deleted; default: always.", _ref("window")),
            "observeOnly": _truth("Only report what would be deleted.", False),
        },
    )


def _window() -> Schema:
    window = _mapping(
        "Days and times of the week.",
        {
            "days": _list("Mon, or Mon-Fri.", _text("A day, or days.", f"^({_DAY})(-({_DAY}))?$")),
            "from": _text('"22:00"', CLOCK),
            "to": _text('"06:00"; if not after from, on the next day.', f"{CLOCK}|^24:00$"),
            "timezone": _text("Europe/Berlin; default: UTC.", r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"),
        },
    )
    return window | {"minProperties": 1}
