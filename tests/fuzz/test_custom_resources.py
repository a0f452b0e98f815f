"""Definitions and instances that no client should send: each is accepted or refused, and none stops the server."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podlife.apiserver.apiextensions.controller import CustomResourceDefinitionController
from tests.component.apiserver.requests import ask
from tests.component.apiserver.test_custom_resources import CRDS, GROUP, WIDGETS, definition, widget
from tests.kit.embedded import start
from tests.kit.wait import until

_KEYWORDS = [
    *(
        "type",
        "properties",
        "items",
        "additionalProperties",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "default",
        "enum",
    ),
    *(
        "pattern",
        "required",
        "nullable",
        "format",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
    ),
    *(
        "minItems",
        "maxItems",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
    ),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
    "x-kubernetes-validations",
]
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["object", "array", "string", "integer", "set", "map", "a", "(", "date-time", "ipv4", ""]
    ),
)
_NAMES = st.sampled_from([*_KEYWORDS, "a", "b", "metadata", "kind", "spec", ""])
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=5),
    max_leaves=25,
)
# Such that some are valid, and instances of them are made.
_SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string", "pattern": "^a+$"},
            {"type": "integer", "maximum": 5, "default": 3},
            {"type": "number", "multipleOf": 0.1},
            {"x-kubernetes-int-or-string": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-embedded-resource": True,
            },
            {"type": "string", "format": "date-time", "nullable": True},
        ]
    ),
    lambda inner: st.one_of(
        st.dictionaries(_NAMES, inner, max_size=3).map(lambda found: {"type": "object", "properties": found}),
        inner.map(lambda items: {"type": "array", "items": items}),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
    ),
    max_leaves=6,
)
_FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@_FEW
@given(
    _JSON,
    st.dictionaries(
        st.sampled_from(["scope", "names", "versions", "conversion", "group"]), _JSON, max_size=2
    ),
)
def test_any_definition_is_accepted_or_refused(schema: Any, spec: dict[str, Any]) -> None:
    async def send() -> None:
        handler = await start()
        crd = definition()
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
        crd["spec"] |= spec
        code, answer = await ask(handler, "POST", CRDS, crd)
        assert code < 500, answer

    asyncio.run(send())


@_FEW
@given(_SCHEMAS, st.lists(_JSON, min_size=1, max_size=5))
def test_any_instance_is_accepted_or_refused(schema: dict[str, Any], values: list[Any]) -> None:
    async def send() -> None:
        handler = await start()
        props = {"type": "object", "properties": {"spec": schema}}
        code, answer = await ask(handler, "POST", CRDS, definition(schema=props))
        assert code < 500, answer
        if code != 201:
            return
        async with asyncio.TaskGroup() as group:
            task = group.create_task(CustomResourceDefinitionController(handler.registry).run())
            await until(lambda: handler.registry.catalog.find(GROUP, "v1", "widgets"))
            for number, value in enumerate(values):
                body = widget(f"w{number}", spec=value)
                code, answer = await ask(handler, "POST", WIDGETS, body)
                assert code < 500, answer
                for patch, kind in (({"spec": value}, "merge-patch+json"), ([], "json-patch+json")):
                    code, answer = await ask(handler, "PATCH", f"{WIDGETS}/w{number}", patch, kind=kind)
                    assert code < 500, answer
            table = "application/json;as=Table;v=v1;g=meta.k8s.io"
            for accept in ("application/json", table):
                code, answer = await ask(handler, "GET", WIDGETS, accept=accept)
                assert code == 200, answer
            task.cancel()

    asyncio.run(send())
