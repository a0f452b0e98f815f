"""The JSON Schema of a policy file, for editors.

It covers keys, types and formats; contradictions between keys are found by the parser, whose field tables it shares. A
test keeps docs/policy.schema.json equal to `policy_schema`.
"""

from __future__ import annotations

from podlife.api.durations import DURATION_WITH_DAYS
from podlife.podgc.policy.parse.document import API_VERSION, KIND, PROTECTION, UPSTREAM
from podlife.podgc.policy.parse.guards import GUARDS, WINDOW_SCHEMA
from podlife.podgc.policy.parse.numbers import SHARE_PATTERN
from podlife.podgc.policy.parse.rules import RULE_SCHEMA
from podlife.podgc.policy.parse.selectors import NAMESPACE_SCHEMA, SELECTOR_SCHEMA
from podlife.podgc.policy.parse.values import Schema, fields_schema, mapping_schema, reference, text_schema


def policy_schema() -> Schema:
    reasons = {
        key: fields_schema(description, fields) | {"minProperties": 1}
        for key, (_, description, fields) in UPSTREAM.items()
    }
    rules = {
        "description": "A pod has one rule: the first that selects it.",
        "type": "array",
        "items": reference("rule"),
    }
    parts = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        "upstream": mapping_schema(
            "Reasons of kube-controller-manager; the flags are the defaults.", reasons
        ),
        "protect": fields_schema("Pods that are not collected for any reason.", PROTECTION),
        "rules": rules,
        "guards": fields_schema("Limits that hold whatever the rules say.", GUARDS),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "podlife pod garbage collector policy",
        **mapping_schema(
            "Which pods are collected, when, and within which limits.", parts, ["apiVersion", "kind"]
        ),
        "$defs": {
            "duration": {
                "description": "A duration: 40s, 1h30m, 7d.",
                "anyOf": [{"type": "string", "pattern": DURATION_WITH_DAYS}, {"const": 0}],
            },
            "share": text_schema("A percentage: 50%.", SHARE_PATTERN),
            "labels": text_schema('A label selector as for kubectl -l: "app in (a, b),tier!=db".'),
            "namespace": NAMESPACE_SCHEMA,
            "rule": RULE_SCHEMA,
            "selector": SELECTOR_SCHEMA,
            "window": WINDOW_SCHEMA,
        },
    }
