"""The shape of a policy file as a JSON Schema, for editors.

It knows keys, types and the forms of words; what contradicts itself between keys only the reader knows. The texts
that say what a form is are the reader's own. docs/policy.schema.json is what `policy_schema` gives; a test says so.
"""

from __future__ import annotations

from typing import Any

from podlife.api.durations import DURATION_WITH_DAYS
from podlife.podgc.policy.model import Order, Per
from podlife.podgc.policy.parse.document import API_VERSION, KIND
from podlife.podgc.policy.parse.guards import DAYS
from podlife.podgc.policy.parse.numbers import CLOCK, SHARE
from podlife.podgc.policy.parse.selectors import PHASES

__all__ = ["policy_schema"]

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
        "title": "podlife: a policy of the pod collector",
        **_mapping(
            "Which pods are collected, when, and what is never exceeded.",
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
                "description": "A length of time: 40s, 1h30m, 7d.",
                "anyOf": [{"type": "string", "pattern": DURATION_WITH_DAYS}, {"const": 0}],
            },
            "share": _text("A part of all: 50%.", SHARE),
            "labels": _text('Labels as kubectl -l takes them: "app in (a, b),tier!=db".'),
            "namespace": _text("The name of a namespace; * and ? may stand in it.", _NAMESPACE),
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
    on = _truth("Whether pods are collected for this reason.", True)

    def reason(description: str, more: dict[str, Schema]) -> Schema:
        return _mapping(description, {"enabled": on, **more}) | {"minProperties": 1}

    threshold = _number("How many ended pods that no rule has may stay; 0 keeps all.", 0)
    quarantine = _ref("duration", "How long a node must be gone.")
    return _mapping(
        "kube-controller-manager's reasons; what is not said is as the flags have it.",
        {
            "terminated": reason("Too many ended pods.", {"threshold": threshold}),
            "outOfService": reason("Terminating on a node that is out of service.", {}),
            "orphaned": reason("The node is gone.", {"quarantine": quarantine}),
            "unscheduled": reason("Terminating, and never scheduled.", {}),
        },
    )


def _protect() -> Schema:
    return _mapping(
        "Pods that nothing collects, whatever rule or reason there is.",
        {
            "namespaces": _list("All pods of these namespaces.", _ref("namespace"), 0),
            "labels": _list("Pods that one of these selectors takes.", _ref("labels"), 0),
            "annotations": _list(
                "Pods with one of these annotations.", _text("KEY or KEY=VALUE.", r"^[^=\s]+(=[\s\S]*)?$"), 0
            ),
            "maxKeepUntil": _ref(
                "duration",
                "How long after its end the annotation podlife.dev/keep-until may keep a pod; 0 ignores it.",
            ),
        },
    )


def _rule() -> Schema:
    keep = _mapping(
        "The youngest so many stay.",
        {
            "count": _number("How many of each group stay.", 0),
            "per": {
                "description": "What counts apart.",
                "enum": [str(each) for each in Per],
                "default": str(Per.CLUSTER),
            },
            "orderBy": {
                "description": "Which are the youngest.",
                "enum": [str(each) for each in Order],
                "default": str(Order.COMPLETION),
            },
        },
        ["count"],
    )
    limits = ("keep", "ttlAfterFinished", "maxTerminating")
    rule = _mapping(
        "What becomes of the pods it selects.",
        {
            "name": _text("By which plan, events and metrics call it.", _NAME),
            "select": _ref("selector", "Which pods; left out it is every pod."),
            "exclude": {
                "description": "Which of them are left alone; no later rule has them either.",
                "anyOf": [_excluded(), {"type": "array", "items": _excluded()}],
            },
            "keep": keep,
            "ttlAfterFinished": _ref("duration", "How long after its end a pod may stay."),
            "collectWhen": {
                "description": "With keep and ttlAfterFinished: beyond all of them, or any.",
                "enum": ["all", "any"],
                "default": "all",
            },
            "maxTerminating": _ref("duration", "How long after its grace a deleted pod may stay."),
            "waitForOwner": _ref(
                "duration", "Hold a pod until its owner has seen the end, at most so long after it."
            ),
            "enabled": _truth("Whether the rule is on.", True),
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
        "All that is said must hold.",
        {
            "namespaces": {"anyOf": [names, by_labels]},
            "labels": _ref("labels"),
            "ownerKind": _list(
                'The kind of the controller: Job, ReplicaSet; "none" is no controller.',
                _text("A kind; * and ? may stand in it.", _KIND),
            ),
            "node": _list("The name of its node.", _text("A name; * and ? may stand in it.", _NODE)),
            "phase": _list("Its phase.", {"enum": list(PHASES)}),
            "reason": _list(
                "Its reason: Evicted, NodeAffinity, Shutdown, OutOfcpu, Preempting.",
                _text("A reason; * and ? may stand in it.", _REASON),
            ),
            "exitCode": _list("How one of its containers ended.", {"type": "integer"}),
        },
    )


def _guards() -> Schema:
    return _mapping(
        "What is never exceeded.",
        {
            "perMinute": _number("How many pods go in any minute.", 1),
            "perPass": _number("How many pods go in one pass.", 1),
            "shareOfNamespace": _ref("share", "Where a pass would take more of a namespace, none goes."),
            "shareOfCluster": _ref("share", "Where a pass would take more of the cluster, none goes."),
            "shareAtLeast": _number("Up to so many pods no share is too much.", 0) | {"default": 10},
            "windows": _list("When pods may go; left out it is always.", _ref("window")),
            "observeOnly": _truth("Only tell what would be done.", False),
        },
    )


def _window() -> Schema:
    window = _mapping(
        "Days and times of the week.",
        {
            "days": _list("Mon, or Mon-Fri.", _text("A day, or days.", f"^({_DAY})(-({_DAY}))?$")),
            "from": _text('"22:00"', CLOCK),
            "to": _text('"06:00"; not after from it is on the next day.', f"{CLOCK}|^24:00$"),
            "timezone": _text("Europe/Berlin; left out it is UTC.", r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$"),
        },
    )
    return window | {"minProperties": 1}
