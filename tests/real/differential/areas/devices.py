"""resource.k8s.io: classes of devices, claims and their templates, slices, and what a status may say."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import container, of, pod
from tests.real.differential.steps import Area

Object = dict[str, Any]

DEVICES = Area("devices")
_GROUP = "resource.k8s.io/v1"
_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_CLASSES, _SLICES = (f"/apis/{_GROUP}/{plural}" for plural in ("deviceclasses", "resourceslices"))
_CLAIMS, _TEMPLATES = (
    f"/apis/{_GROUP}/namespaces/${{ns}}/{plural}" for plural in ("resourceclaims", "resourceclaimtemplates")
)


def _select(*expressions: str) -> list[Object]:
    return [{"cel": {"expression": each}} for each in expressions]


def _class(name: str, *expressions: str, **spec: Any) -> Object:
    return of(_GROUP, "DeviceClass", name, spec={"selectors": _select(*expressions), **spec})


def _opaque(driver: str = "gpu.example.com", parameters: Any = None, **more: Any) -> Object:
    return {
        "opaque": {"driver": driver, "parameters": {"a": 1} if parameters is None else parameters},
        **more,
    }


_IS_GPU = 'device.driver == "gpu.example.com"'
DEVICES.get("discovery", f"/apis/{_GROUP}")
DEVICES.post("class-empty", _CLASSES, of(_GROUP, "DeviceClass", "diff-empty"))
DEVICES.post(
    "class",
    _CLASSES,
    _class("diff-gpu", _IS_GPU, config=[_opaque()], extendedResourceName="example.com/gpu"),
)
DEVICES.patch("class-label", "merge", f"{_CLASSES}/diff-gpu", {"metadata": {"labels": {"a": "b"}}})
DEVICES.patch("class-change", "merge", f"{_CLASSES}/diff-gpu", {"spec": {"config": []}})
DEVICES.get("class-rows", f"{_CLASSES}?labelSelector=a%3Db", headers=_TABLE)
DEVICES.get("class-selector", f"{_CLASSES}?fieldSelector=spec.driver%3Da", 400)
_DOMAIN = 'device.attributes["gpu.example.com"]'
_expressions = {
    "attribute": f'{_DOMAIN}.model == "a"',
    "attribute-index": f'{_DOMAIN}["model"] == "a" && {_DOMAIN}["count"] > 3',
    "boolean-attribute": f"{_DOMAIN}.enabled",
    "capacity": 'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))',
    "capacity-compare": 'device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0',
    "version": f'{_DOMAIN}.driverVersion.isGreaterThan(semver("1.2.3"))',
    "bind": f'cel.bind(gpu, {_DOMAIN}, gpu.a && gpu.b == "x")',
    "membership": f'"gpu.example.com" in device.attributes && "model" in {_DOMAIN}',
    "has": f"has({_DOMAIN}.model)",
    "optional": f'{_DOMAIN}[?"model"].orValue("x") == "a"',
    "shared": "device.allowMultipleAllocations",
    "matches": f'{_DOMAIN}.model.matches("^a[0-9]+$")',
    "keys": 'device.attributes.all(domain, domain.endsWith(".com"))',
    "nested": "device.attributes.exists(d, device.attributes[d].exists(k, k == 'model'))",
    "conversion": f'string({_DOMAIN}.model).startsWith("a")',
    "lists": f'{_DOMAIN}.model in ["a", "b"]',
    "patterns": "device.attributes.all(a, device.attributes.all(b, device.attributes[a].x.matches(b)))",
    "ternary": f"{_DOMAIN}.a ? {_DOMAIN}.b : {_DOMAIN}.c",
}
for _name, _text in _expressions.items():
    DEVICES.post(f"class-cel-{_name}", _CLASSES, _class(f"diff-cel-{_name}", _text))
_refused_expressions = {
    "syntax": "device.driver ==",
    "empty": "",
    "unknown-variable": "object.driver == 'a'",
    "unknown-field": "device.name == 'a'",
    "text": "device.driver",
    "number": "size(device.attributes)",
    "list": "[device.driver]",
    "map-of-any": _DOMAIN,
    "dynamic": "dyn(true)",
    "iterates-over-any": f"{_DOMAIN}.list.exists(x, x == 1)",
    "wrong-types": "device.driver == 1",
    "quantity": 'device.capacity["a"].b > 3',
    "costly": " && ".join(["device.attributes.all(a, device.attributes.all(b, a + b != a))"] * 40),
    "too-long": "true || " * 1300 + "true",
    "cubic": "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a+b+c != 'x')))",
}
for _name, _text in _refused_expressions.items():
    DEVICES.post(f"class-refused-{_name}", _CLASSES, _class("diff-refused", _text), 422)
_refused_classes: dict[str, Object] = {
    "selector": {"selectors": [{}]},
    "many-selectors": {"selectors": _select(*["true"] * 33)},
    "configuration": {"config": [{}, _opaque("", {}), _opaque("A_b", [1]), _opaque("a" * 64, "text")]},
    "many-configurations": {"config": [_opaque()] * 33},
    "long-parameters": {"config": [_opaque(parameters={"a": "x" * 10_240})]},
    "no-parameters": {"config": [{"opaque": {"driver": "a"}}]},
    "extended": {"extendedResourceName": "cpu"},
}
for _name, _fields in _refused_classes.items():
    DEVICES.post(f"class-refused-{_name}", _CLASSES, _class("diff-refused", **_fields), 422)
DEVICES.post("class-bad-name", _CLASSES, _class("Diff_Gpu"), 422)
DEVICES.patch("class-breaks", "merge", f"{_CLASSES}/diff-gpu", {"spec": {"selectors": _select("1")}}, 422)


def _request(name: str = "gpu", **exactly: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": "diff-gpu", **exactly}}


def _claim(name: str, *requests: Object, **devices: Any) -> Object:
    return of(_GROUP, "ResourceClaim", name, spec={"devices": {"requests": list(requests), **devices}})


_ALTERNATIVES = {
    "name": "any",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "diff-gpu", "count": 2},
        {
            "name": "small",
            "deviceClassName": "diff-gpu",
            "allocationMode": "All",
            "selectors": _select(_IS_GPU),
        },
    ],
}
_TOLERATIONS = [
    {"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Equal", "value": "a", "tolerationSeconds": 3},
]
DEVICES.post("claim-empty", _CLAIMS, of(_GROUP, "ResourceClaim", "empty"))
DEVICES.post("claim", _CLAIMS, _claim("plain", _request()))
DEVICES.post(
    "claim-full",
    _CLAIMS,
    _claim(
        "full",
        _request(
            selectors=_select(_IS_GPU), tolerations=_TOLERATIONS, capacity={"requests": {"memory": "1024Mi"}}
        ),
        _request("all", allocationMode="All"),
        _ALTERNATIVES,
        constraints=[
            {"matchAttribute": "gpu.example.com/numa", "requests": ["gpu", "any/small"]},
            {"distinctAttribute": "gpu.example.com/id"},
        ],
        config=[_opaque(requests=["gpu", "any"])],
    )
    | {"status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "b"}]}},
)
_refused_claims: dict[str, Object] = {
    "name": _claim("refused", _request(""), _request("A"), _request("a"), _request("a")),
    "nothing": _claim("refused", {"name": "a"}),
    "both": _claim("refused", _ALTERNATIVES | _request("a")),
    "no-class": _claim("refused", _request(deviceClassName="")),
    "bad-class": _claim("refused", _request(deviceClassName="A b")),
    "mode": _claim("refused", _request(allocationMode="Some")),
    "count": _claim("refused", _request(count=-1)),
    "count-of-all": _claim("refused", _request(allocationMode="All", count=3)),
    "selectors": _claim("refused", _request(selectors=[{}, *_select("device.x", "device.driver")])),
    "tolerations": _claim(
        "refused",
        _request(
            tolerations=[
                {"key": "a b", "operator": "Exists", "value": "x"},
                {"operator": "Equal", "value": "a b"},
                {},
                {"operator": "Lt", "effect": "Never"},
            ]
        ),
    ),
    "many-requests": _claim("refused", *(_request(f"a{index}") for index in range(33))),
    "many-alternatives": _claim(
        "refused",
        {
            "name": "a",
            "firstAvailable": [{"name": f"a{index}", "deviceClassName": "a"} for index in range(9)],
        },
    ),
    "alternatives": _claim(
        "refused",
        {
            "name": "a",
            "firstAvailable": [
                {"name": "A", "deviceClassName": ""},
                *[{"name": "b", "deviceClassName": "a"}] * 2,
            ],
        },
    ),
    "constraints": _claim(
        "refused",
        _request(),
        _ALTERNATIVES,
        constraints=[
            {"requests": ["gpu", "gpu", "other", "any/none", "a/b/c", "any/"], "matchAttribute": "numa"},
            {},
            {"matchAttribute": "/"},
            {"matchAttribute": "A_b/9" + "a" * 40},
            {"distinctAttribute": "a/b/c"},
            {"distinctAttribute": ""},
            {"distinctAttribute": "a", "matchAttribute": "b"},
        ],
    ),
    "many-constraints": _claim("refused", _request(), constraints=[{"matchAttribute": "a/b"}] * 33),
    "many-names": _claim(
        "refused", _request(), constraints=[{"matchAttribute": "a/b", "requests": ["gpu"] * 33}]
    ),
    "configuration": _claim("refused", _request(), config=[{}, _opaque("", [], requests=["a"])]),
    "admin": _claim("refused", _request(adminAccess=True)),
    "quantity": _claim("refused", _request(capacity={"requests": {"memory": "much"}})),
}
for _name, _body in _refused_claims.items():
    DEVICES.post(f"claim-{_name}", _CLAIMS, _body, 400 if _name == "quantity" else 422)
DEVICES.post("claim-bad-name", _CLAIMS, _claim("Plain_", _request()), 422)
DEVICES.patch("claim-label", "merge", f"{_CLAIMS}/plain", {"metadata": {"labels": {"a": "b"}}})
DEVICES.put("claim-changed", f"{_CLAIMS}/plain", _claim("plain", _request(count=2)), 422)
DEVICES.put("claim-changed-to-nonsense", f"{_CLAIMS}/plain", _claim("plain", _request("A_")), 422)
DEVICES.patch("claim-status-ignored", "merge", f"{_CLAIMS}/plain", {"status": {"devices": []}})
DEVICES.patch(
    "claim-applied",
    "apply",
    f"{_CLAIMS}/applied?fieldManager=me",
    _claim("applied", _request(), constraints=[{"matchAttribute": "a/b"}]),
    201,
)
DEVICES.get("claim-selector", f"{_CLAIMS}?fieldSelector=spec.driver%3Da", 400)


def _result(**more: Any) -> Object:
    return {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0", **more}


def _allocated(*results: Object, **more: Any) -> Object:
    return {"allocation": {"devices": {"results": list(results), **more.pop("devices", {})}, **more}}


def _consumer(uid: str = "1") -> Object:
    return {"resource": "pods", "name": "a", "uid": uid}


def _device(**more: Any) -> Object:
    return {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0", **more}


_SHARE = "0a1b2c3d-0000-4000-8000-00000000000a"
_NODE = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
}
_BINDING = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
_CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Yes",
    "message": "",
    "lastTransitionTime": "2024-01-01T00:00:00Z",
}
_refused_statuses: dict[str, Object] = {
    "reserved": {"reservedFor": [_consumer()]},
    "consumers": _allocated(_result())
    | {"reservedFor": [{"resource": "", "name": "", "uid": ""}, *[_consumer()] * 2]},
    "many-consumers": _allocated(_result()) | {"reservedFor": [_consumer(str(n)) for n in range(257)]},
    "result": _allocated({"request": "other", "driver": "", "pool": "", "device": ""}),
    "result-names": _allocated(_result(request="a/b/c", driver="A b", pool="a//B", device="x.y")),
    "long-names": _allocated(_result(driver="a" * 64, pool="a/" * 130 + "a")),
    "share": _allocated(
        *(
            _result(shareID=each)
            for each in (
                "x",
                _SHARE.upper(),
                "z" * 36,
                "z" * 32,
                "{" + "a" * 37,
                "x" * 45,
                f"urn:uuid:{_SHARE}",
            )
        )
    ),
    "many-results": _allocated(*[_result()] * 33),
    "binding": _allocated(
        _result(bindingConditions=["a b", "a", "a"], bindingFailureConditions=["a", "b", "b"])
    ),
    "binding-alone": _allocated(_result(bindingConditions=["a"]), _result(bindingFailureConditions=["b"])),
    "many-bindings": _allocated(_result(bindingConditions=list("abcde"), bindingFailureConditions=["x"])),
    "selector": _allocated(_result(), nodeSelector={"nodeSelectorTerms": []}),
    "configuration": _allocated(
        _result(), devices={"config": [_opaque(source=""), _opaque(source="x"), {"source": "FromClass"}]}
    ),
    "admin": _allocated(_result(adminAccess=True)),
    "devices-unallocated": {"devices": [_device()]},
    "devices": _allocated(_result())
    | {
        "devices": [
            _device(
                conditions=[
                    {},
                    _CONDITION,
                    _CONDITION,
                    _CONDITION
                    | {"status": "Perhaps", "reason": "a b", "type": "a b", "observedGeneration": -1},
                ]
            ),
            _device(data=[1]),
            _device(
                device="gpu-1",
                networkData={
                    "ips": ["1.2.3.4", "01.2.3.4/24", "::ffff:1.2.3.4/120", "10.0.0.1/8", "10.0.0.1/8"],
                    "interfaceName": "x" * 257,
                    "hardwareAddress": "x" * 129,
                },
            ),
            _device(driver="", pool="", device="", shareID="x"),
            _device(conditions=[_CONDITION | {"type": f"T{n}"} for n in range(9)], data={"a": "x" * 10_240}),
        ]
    },
}
for _name, _status in _refused_statuses.items():
    DEVICES.patch(f"status-{_name}", "merge", f"{_CLAIMS}/plain/status", {"status": _status}, 422)
DEVICES.patch(
    "status-allocated",
    "merge",
    f"{_CLAIMS}/plain/status",
    {
        "metadata": {"labels": {"c": "d"}},
        "spec": {"devices": {}},
        "status": _allocated(
            _result(consumedCapacity={"memory": "1024Mi"}, shareID=_SHARE, **_BINDING),
            _result(device="gpu-1", tolerations=_TOLERATIONS),
            nodeSelector=_NODE,
            devices={"config": [_opaque(source="FromClass"), _opaque(source="FromClaim", requests=["gpu"])]},
        )
        | {"reservedFor": [_consumer()]},
    },
)
DEVICES.get("claim-rows", f"{_CLAIMS}?limit=500", headers=_TABLE)
DEVICES.patch(
    "status-reallocated", "merge", f"{_CLAIMS}/plain/status", {"status": _allocated(_result())}, 422
)
DEVICES.patch(
    "status-reported",
    "merge",
    f"{_CLAIMS}/plain/status",
    {
        "status": {
            "devices": [
                _device(shareID=_SHARE, conditions=[_CONDITION], data={"a": 1}),
                _device(
                    device="gpu-1",
                    networkData={"ips": ["10.0.0.1/8", "2001:db8::1/64"], "interfaceName": "eth0"},
                ),
            ]
        }
    },
)
DEVICES.patch("status-forbidden", "merge", f"{_CLAIMS}/plain/status", {"status": {}}, 403, who="nobody")


def _allow(name: str, resource: str, *verbs: str, names: tuple[str, ...] = ()) -> None:
    """Give `nobody` a permission in the whole cluster."""
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": list(verbs)}
    role = of(
        f"{group}/v1",
        "ClusterRole",
        f"diff-{name}",
        rules=[rule | ({"resourceNames": list(names)} if names else {})],
    )
    DEVICES.post(f"role-{name}", f"/apis/{group}/v1/clusterroles", role)
    binding = of(
        f"{group}/v1",
        "ClusterRoleBinding",
        f"diff-{name}",
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": f"diff-{name}"},
        subjects=[{"apiGroup": group, "kind": "User", "name": "nobody"}],
    )
    DEVICES.post(f"role-{name}-bound", f"/apis/{group}/v1/clusterrolebindings", binding)


def _by_nobody(name: str, status: Object, code: int) -> None:
    """By a user with few permissions, of which the real server hears after a while."""
    DEVICES.patch(
        f"status-{name}",
        "merge",
        f"{_CLAIMS}/full/status",
        {"status": status},
        code,
        who="nobody",
        until=lambda body: body.get("code", 200) == code,
    )


_REPORT = {"devices": [_device(data={"a": 1})]}
_allow("status", "resourceclaims/status", "patch")
_by_nobody("not-by-a-stranger", _allocated(_result()) | _REPORT, 422)
_allow("binding", "resourceclaims/binding", "patch")
_by_nobody("allocated-with-a-permission", _allocated(_result()), 200)
_by_nobody("not-of-another-driver", _REPORT, 422)
_allow("driver", "resourceclaims/driver", "arbitrary-node:patch", names=("gpu.example.com",))
_by_nobody("reported-with-a-permission", _REPORT, 200)
DEVICES.patch("claim-held", "merge", f"{_CLAIMS}/plain", {"metadata": {"finalizers": ["example.com/held"]}})
DEVICES.delete("claim-deleted", f"{_CLAIMS}/plain")
DEVICES.get("claim-deleted-rows", f"{_CLAIMS}?limit=500", headers=_TABLE)
DEVICES.patch(
    "status-reserved-too-late",
    "merge",
    f"{_CLAIMS}/plain/status",
    {"status": {"reservedFor": [_consumer(), _consumer("2")]}},
    422,
)
DEVICES.patch("status-released", "merge", f"{_CLAIMS}/plain/status", {"status": {"reservedFor": None}})
DEVICES.patch("status-deallocated", "merge", f"{_CLAIMS}/plain/status", {"status": {"allocation": None}})
DEVICES.patch("claim-let-go", "merge", f"{_CLAIMS}/plain", {"metadata": {"finalizers": None}})

_SPEC = {"devices": {"requests": [_request()]}}
DEVICES.post("template-empty", _TEMPLATES, of(_GROUP, "ResourceClaimTemplate", "empty"))
DEVICES.post(
    "template",
    _TEMPLATES,
    of(_GROUP, "ResourceClaimTemplate", "plain", spec={"metadata": {"labels": {"a": "b"}}, "spec": _SPEC}),
)
DEVICES.post(
    "template-refused",
    _TEMPLATES,
    of(
        _GROUP,
        "ResourceClaimTemplate",
        "refused",
        spec={
            "metadata": {"name": "a", "labels": {"a b": "c"}, "annotations": {"a b": "c"}},
            "spec": {"devices": {"requests": [_request("A", count=-1)]}},
        },
    ),
    422,
    unordered=True,
)
DEVICES.post(
    "template-admin",
    _TEMPLATES,
    of(
        _GROUP,
        "ResourceClaimTemplate",
        "admin",
        spec={"spec": {"devices": {"requests": [_request(), _request("b", adminAccess=True)]}}},
    ),
    422,
)
DEVICES.patch("template-label", "merge", f"{_TEMPLATES}/plain", {"metadata": {"labels": {"a": "b"}}})
DEVICES.patch(
    "template-change", "merge", f"{_TEMPLATES}/plain", {"spec": {"metadata": {"labels": {"a": "c"}}}}, 422
)
DEVICES.get("template-rows", f"{_TEMPLATES}?limit=500", headers=_TABLE)
DEVICES.patch(
    "namespace-for-admins",
    "merge",
    "/api/v1/namespaces/${ns}",
    {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}},
)
DEVICES.post("claim-admin-allowed", _CLAIMS, _claim("admin", _request(adminAccess=True)))


def _slice(name: str, *devices: Object, **spec: Any) -> Object:
    pool = {"name": "node-a", "resourceSliceCount": 1}
    given: Object = {"driver": "gpu.example.com", "pool": pool, "nodeName": "node-a"}
    return of(
        _GROUP, "ResourceSlice", name, spec=given | ({"devices": list(devices)} if devices else {}) | spec
    )


_GPU: Object = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "a100"},
        "gpu.example.com/numa": {"int": 1},
        "fast": {"bool": False},
        "driverVersion": {"version": "1.2.3-rc.1+build.5"},
    },
    "capacity": {"memory": {"value": "40960Mi"}},
}
_LIST = {"strings": ["a"], "ints": [1], "bools": [True], "versions": ["1.0.0"]}
_COUNTERS = {"name": "c", "counters": {"memory": {"value": "1024Mi"}}}
DEVICES.post("slice-empty", _SLICES, _slice("diff-empty"))
DEVICES.post("slice", _SLICES, _slice("diff-plain", _GPU, {"name": "gpu-1"}))
DEVICES.post("slice-nothing", _SLICES, of(_GROUP, "ResourceSlice", "diff-nothing"), 422)
DEVICES.post("slice-upper-case", _SLICES, _slice("diff-upper", driver="GPU.example.com"))
DEVICES.post(
    "slice-tainted",
    _SLICES,
    _slice("diff-tainted", {"name": "a", "taints": [{"key": "a", "effect": "NoSchedule", "value": "b"}]}),
)
DEVICES.post(
    "slice-per-device",
    _SLICES,
    _slice(
        "diff-per-device",
        {"name": "a", "nodeName": "x"},
        {"name": "b", "allNodes": True},
        {"name": "c", "nodeSelector": _NODE},
        nodeName=None,
        perDeviceNodeSelection=True,
    ),
)
DEVICES.post(
    "slice-counters",
    _SLICES,
    _slice("diff-counters", sharedCounters=[_COUNTERS]),
)
DEVICES.post(
    "slice-consumes",
    _SLICES,
    _slice(
        "diff-consumes",
        {
            "name": "a",
            "consumesCounters": [{"counterSet": "c", "counters": {"memory": {"value": "1"}}}],
            **_BINDING,
            "bindsToNode": True,
        },
        {
            "name": "b",
            "attributes": {"a": {"string": "b", **_LIST}},
            "nodeAllocatableResourceMappings": {"cpu": {}},
        },
        nodeName=None,
        nodeSelector=_NODE,
    ),
)


def _shared(value: str = "10Gi", **policy: Any) -> Object:
    capacity = {"memory": {"value": value, "requestPolicy": policy}}
    return {"name": "a", "allowMultipleAllocations": True, "capacity": capacity}


DEVICES.post(
    "slice-shared",
    _SLICES,
    _slice(
        "diff-shared",
        _shared(default="1024Mi", validRange={"min": "1Gi", "max": "4096Mi", "step": "1Gi"}),
        _shared(default="1Gi", validValues=["1Gi", "2048Mi"]) | {"name": "b"},
        _shared() | {"name": "c"},
    ),
)
_refused_devices: dict[str, list[Object]] = {
    "names": [{"name": ""}, {"name": "A.b"}, {"name": "a"}, {"name": "a"}],
    "attribute-names": [
        {"name": "a", "attributes": {each: {"bool": True}}}
        for each in ("", "/a", "a/", "a-b", "A_b/c", "9", "a" * 33)
    ],
    "attribute-in-long-name": [{"name": "a", "attributes": {"a" * 120: {}}}],
    "attributes": [{"name": "a", "attributes": {"a": {}}}],
    "attribute-of-two": [{"name": "a", "attributes": {"a": {"int": 1, "bool": True}}}],
    "attribute-list-alone": [{"name": "a", "attributes": {"a": _LIST}}],
    "attribute-values": [
        {"name": "a", "attributes": {"a": {"string": "x" * 65}}},
        {"name": "b", "attributes": {"a": {"version": "1.2"}}},
        {"name": "c", "attributes": {"a": {"version": "1.2.3-" + "x" * 65}}},
    ],
    "many-attributes": [{"name": "a", "attributes": {f"a{n}": {"int": n} for n in range(33)}}],
    "too-many-attributes": [{"name": "a", "attributes": {f"a{n}": {"int": n} for n in range(49)}}],
    "capacity-names": [{"name": "a", "capacity": {"a-b": {"value": "1"}}}],
    "taints": [
        {"name": "a", "taints": [{"key": "", "effect": ""}, {"key": "a b", "value": "a b", "effect": "x"}]}
    ],
    "many-taints": [{"name": "a", "taints": [{"key": "a", "effect": "None"}] * 17}],
    "consumptions": [
        {
            "name": "a",
            "consumesCounters": [
                {"counterSet": "", "counters": {}},
                {"counterSet": "", "counters": {"A": {"value": "1"}}},
            ],
        }
    ],
    "many-consumptions": [
        {
            "name": "a",
            "consumesCounters": [
                {"counterSet": f"c{n}", "counters": {"a": {"value": "1"}}} for n in range(3)
            ],
        }
    ],
    "nodes": [{"name": "a", "nodeName": "x"}],
    "binding": [
        {"name": "a", "bindingConditions": ["a", "a", "b"], "bindingFailureConditions": ["b", "c d"]}
    ],
    "binding-alone": [
        {"name": "a", "bindingConditions": ["a"]},
        {"name": "b", "bindingFailureConditions": ["b"]},
    ],
    "many": [{"name": f"a{n}"} for n in range(129)],
    "many-tainted": [{"name": f"a{n}", "taints": [{"key": "a", "effect": "None"}]} for n in range(65)],
    "policy-unshared": [_shared(default="1Gi") | {"allowMultipleAllocations": None}],
    "policy-both": [_shared(default="1Gi", validValues=["1Gi"], validRange={"min": "1Gi"})],
    "policy-no-default": [_shared(validValues=["1Gi"]), _shared(validRange={"min": "1Gi"}) | {"name": "b"}],
    "policy-values": [_shared(default="3Gi", validValues=["2Gi", "1Gi", "1024Mi", "20Gi"])],
    "policy-many-values": [_shared(default="1Gi", validValues=[f"{n + 1}" for n in range(11)])],
    "policy-no-least": [_shared(default="1Gi", validRange={"max": "1Gi"})],
    "policy-range": [_shared(default="1Gi", validRange={"min": "20Gi", "max": "15Gi", "step": "3Gi"})],
    "policy-above": [_shared(default="9Gi", validRange={"min": "1Gi", "max": "8Gi", "step": "3Gi"})],
    "policy-step": [_shared(default="2500M", validRange={"min": "1G", "step": "1Gi"})],
}
for _name, _devices in _refused_devices.items():
    DEVICES.post(f"slice-{_name}", _SLICES, _slice("diff-refused", *_devices), 422, unordered=True)
_refused_slices: dict[str, Object] = {
    "driver": {"driver": "A b"},
    "pool": {"pool": {"name": "a//B", "resourceSliceCount": 0, "generation": -1}},
    "no-pool": {"pool": {"name": "", "resourceSliceCount": 1}},
    "long-pool": {"pool": {"name": "a" * 254, "resourceSliceCount": 1}},
    "empty-node": {"nodeName": ""},
    "bad-node": {"nodeName": "A b"},
    "no-node": {"nodeName": None},
    "two-nodes": {"allNodes": True, "perDeviceNodeSelection": True},
    "flags": {"nodeName": None, "allNodes": False, "perDeviceNodeSelection": False},
    "node-selector": {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}},
    "node-terms": {
        "nodeName": None,
        "nodeSelector": {"nodeSelectorTerms": [*_NODE["nodeSelectorTerms"]] * 2},
    },
    "devices-and-counters": {"devices": [{"name": "a"}], "sharedCounters": [_COUNTERS]},
    "counters": {
        "sharedCounters": [
            {"name": "", "counters": {}},
            {"name": "A", "counters": {"A": {"value": "1"}}},
            *[{"name": "b", "counters": {"a": {"value": "1"}}}] * 2,
        ]
    },
    "many-counter-sets": {
        "sharedCounters": [{"name": f"a{n}", "counters": {"a": {"value": "1"}}} for n in range(9)]
    },
    "many-counters": {
        "sharedCounters": [{"name": "a", "counters": {f"a{n}": {"value": "1"} for n in range(33)}}]
    },
    "device-nodes": {
        "nodeName": None,
        "perDeviceNodeSelection": True,
        "devices": [
            {"name": "a"},
            {"name": "b", "nodeName": "", "allNodes": False},
            {"name": "c", "nodeName": "A b", "allNodes": True, "nodeSelector": {"nodeSelectorTerms": []}},
        ],
    },
}
for _name, _fields in _refused_slices.items():
    DEVICES.post(f"slice-with-{_name}", _SLICES, _slice("diff-refused", **_fields), 422, unordered=True)
DEVICES.post("slice-quantity", _SLICES, _slice("diff-refused", _shared("much")), 400)
DEVICES.patch(
    "slice-immutable",
    "merge",
    f"{_SLICES}/diff-plain",
    {"spec": {"driver": "other.example.com", "pool": {"name": "b"}, "nodeName": "node-b"}},
    422,
)
DEVICES.patch(
    "slice-moves", "merge", f"{_SLICES}/diff-plain", {"spec": {"nodeName": None, "allNodes": True}}, 422
)
DEVICES.patch("slice-change", "merge", f"{_SLICES}/diff-plain", {"spec": {"pool": {"generation": 2}}})
DEVICES.patch("slice-same", "merge", f"{_SLICES}/diff-plain", {"metadata": {"labels": {"a": "b"}}})
DEVICES.get(
    "slice-by-node", f"{_SLICES}?fieldSelector=spec.nodeName%3Dnode-a%2Cspec.driver%3Dgpu.example.com"
)
DEVICES.get("slice-by-no-node", f"{_SLICES}?fieldSelector=spec.nodeName%3D", headers=_TABLE)
DEVICES.get("slice-by-pool", f"{_SLICES}?fieldSelector=spec.pool.name%3Da", 400)
DEVICES.get("slice-rows", f"{_SLICES}?limit=500", headers=_TABLE)
DEVICES.post("node-slice", _SLICES, _slice("diff-of-node-a"), who="node-a")
DEVICES.post("node-slice-of-another", _SLICES, _slice("diff-of-node-b", nodeName="node-b"), 403, who="node-a")
DEVICES.post(
    "node-slice-of-all", _SLICES, _slice("diff-of-all", nodeName=None, allNodes=True), 403, who="node-a"
)
DEVICES.get(
    "node-reads-its-slice",
    f"{_SLICES}/diff-of-node-a",
    who="node-a",
    until=lambda body: body["kind"] == "ResourceSlice",
)
DEVICES.get("node-reads-another-slice", f"{_SLICES}/diff-of-node-a", 403, who="node-b")
DEVICES.get("node-lists-its-slices", f"{_SLICES}?fieldSelector=spec.nodeName%3Dnode-b", who="node-b")
DEVICES.get("node-lists-all-slices", _SLICES, 403, who="node-b")
DEVICES.delete("node-deletes-its-slice", f"{_SLICES}/diff-of-node-a", who="node-a")

_refused_pods: dict[str, Object] = {
    "both": {"resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]},
    "none": {"resourceClaims": [{"name": "a"}]},
    "names": {"resourceClaims": [{"name": "A", "resourceClaimName": "B c"}, {"resourceClaimName": "a"}]},
    "twice": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}] * 2},
    "unknown": {"containers": [container(resources={"claims": [{"name": "a"}]})]},
}
DEVICES.post(
    "pod",
    "/api/v1/namespaces/${ns}/pods",
    pod(
        "claims",
        resourceClaims=[
            {"name": "a", "resourceClaimName": "plain"},
            {"name": "b", "resourceClaimTemplateName": "plain"},
        ],
        containers=[container(resources={"claims": [{"name": "a", "request": "gpu"}, {"name": "b"}]})],
    ),
)
for _name, _fields in _refused_pods.items():
    DEVICES.post(f"pod-{_name}", "/api/v1/namespaces/${ns}/pods", pod("refused", **_fields), 422)
DEVICES.delete("classes-deleted", _CLASSES)
DEVICES.delete("slice-deleted", f"{_SLICES}/diff-plain")
DEVICES.delete("slices-deleted", _SLICES)
