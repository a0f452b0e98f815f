"""Many writes by several managers, drawn at random with a fixed seed: every list and map type of the schema."""

from __future__ import annotations

import random
from typing import Any

from tests.real.differential.areas.objects import APPS, CORE
from tests.real.differential.steps import Area

MANAGERS, MERGES = Area("managers"), Area("merges")
_DEPLOYMENT = APPS + "/deployments/d"
_SERVICE = CORE + "/services/s"
_ACCOUNT = CORE + "/serviceaccounts/a"


def _some(chance: random.Random, values: list[Any], most: int = 3) -> list[Any]:
    return chance.sample(values, chance.randint(0, min(most, len(values))))


def _ports(chance: random.Random) -> list[dict[str, Any]]:
    """Two keys, one of them with a default."""
    numbers = _some(chance, [80, 443, 8080, 9], 3)
    return [
        {
            "containerPort": number,
            **chance.choice([{}, {"protocol": "TCP"}, {"protocol": "UDP"}]),
            **chance.choice([{}, {"hostIP": f"1.1.1.{chance.randint(1, 3)}"}]),
        }
        for number in numbers
    ]


def _container(chance: random.Random, name: str) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "env": [{"name": n, "value": str(chance.randint(1, 3))} for n in _some(chance, ["A", "B", "C"])],
        "ports": _ports(chance),
        "args": _some(chance, ["x", "y", "z"]),
        "volumeMounts": [{"name": "v", "mountPath": f"/{n}"} for n in _some(chance, ["a", "b"])],
        "resources": {"limits": {n: str(chance.randint(1, 3)) for n in _some(chance, ["cpu", "memory"])}},
        "securityContext": {"runAsUser": chance.randint(1, 3), "capabilities": {"add": ["NET_ADMIN"]}},
        "imagePullPolicy": chance.choice(["Always", "Never"]),
        "readinessProbe": {"tcpSocket": {"port": chance.choice([80, "http"])}},
    }
    return {"name": name, **{key: parts[key] for key in _some(chance, sorted(parts), 4)}}


def _template(chance: random.Random) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "containers": [_container(chance, n) for n in chance.sample(["one", "two"], chance.randint(1, 2))],
        "volumes": [{"name": n, "emptyDir": {}} for n in ["v", *_some(chance, ["w", "x"])]],
        "nodeSelector": {n: str(chance.randint(1, 2)) for n in _some(chance, ["zone", "disk"])},
        "tolerations": [{"key": n, "operator": "Exists"} for n in _some(chance, ["t", "u"])],
        "hostAliases": [
            {"ip": f"10.1.1.{n}", "hostnames": _some(chance, ["h", "i"])} for n in _some(chance, [1, 2])
        ],
        "imagePullSecrets": [{"name": n} for n in _some(chance, ["s", "t"])],
        "topologySpreadConstraints": [
            {"topologyKey": n, "whenUnsatisfiable": w, "maxSkew": chance.randint(1, 3), "labelSelector": {}}
            for n in _some(chance, ["zone", "host"])
            for w in _some(chance, ["DoNotSchedule", "ScheduleAnyway"])
        ],
        "securityContext": {"fsGroup": chance.randint(1, 3)},
        "affinity": {"nodeAffinity": {}},
        "terminationGracePeriodSeconds": chance.randint(1, 3),
        "priorityClassName": "",
    }
    return {"spec": {key: parts[key] for key in _some(chance, sorted(parts), 5)}}


def _deployment(chance: random.Random) -> dict[str, Any]:
    meta = {
        "labels": {n: str(chance.randint(1, 3)) for n in _some(chance, ["a", "b", "c"])},
        "annotations": {n: str(chance.randint(1, 3)) for n in _some(chance, ["d", "e"])},
        "finalizers": [f"x.y/{n}" for n in _some(chance, ["f", "g", "h"])],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n} for n in _some(chance, ["i", "j"])
        ],
    }
    spec: dict[str, Any] = {
        "replicas": chance.randint(0, 3),
        "minReadySeconds": chance.randint(0, 3),
        "paused": chance.choice([True, False]),
        "strategy": chance.choice(
            [{}, {"rollingUpdate": {"maxSurge": chance.choice([1, "50%"])}}, {"type": "RollingUpdate"}]
        ),
        "template": _template(chance),
    }
    return {
        "metadata": {"name": "d", **{key: meta[key] for key in _some(chance, sorted(meta), 2)}},
        "spec": {key: spec[key] for key in _some(chance, sorted(spec), 3)},
    }


def _service(chance: random.Random) -> dict[str, Any]:
    ports = [
        {
            "name": f"n{number}",
            "port": number,
            "targetPort": chance.choice([1, "x"]),
            **chance.choice([{}, {"protocol": "TCP"}]),
        }
        for number in _some(chance, [80, 443, 9000])
    ]
    spec: dict[str, Any] = {
        "ports": ports,
        "selector": {n: str(chance.randint(1, 2)) for n in _some(chance, ["a", "b"])},
        "publishNotReadyAddresses": chance.choice([True, False]),
    }
    return {"metadata": {"name": "s"}, "spec": {key: spec[key] for key in _some(chance, sorted(spec), 3)}}


def _account(chance: random.Random) -> dict[str, Any]:
    """A list whose elements are atomic."""
    return {
        "metadata": {"name": "a"},
        "secrets": [
            {"name": n, "namespace": str(chance.randint(1, 2))} for n in _some(chance, ["s", "t", "u"])
        ],
        "imagePullSecrets": [{"name": n} for n in _some(chance, ["s", "t"])],
    }


_KINDS: dict[str, tuple[str, str, Any]] = {
    _DEPLOYMENT: ("apps/v1", "Deployment", _deployment),
    _SERVICE: ("v1", "Service", _service),
    _ACCOUNT: ("v1", "ServiceAccount", _account),
}


def _draw(area: Area, chance: random.Random, path: str, number: int) -> None:
    version, kind, make = _KINDS[path]
    body = {"apiVersion": version, "kind": kind, **make(chance)}
    manager = chance.choice(["anna", "berta", "carla"])
    verb = chance.choice(["apply", "apply", "force", "force", "force", "merge", "strategic"])
    name = f"{kind.lower()}-{number}-{verb}"
    if verb in ("apply", "force"):
        query = f"?fieldManager={manager}" + ("&force=true" if verb == "force" else "")
        area.patch(name, "apply", path + query, body, 0)
    else:
        area.patch(name, verb, f"{path}?fieldManager={manager}", body, 0)


def _base(area: Area) -> None:
    containers = [{"name": n, "image": "i"} for n in ("one", "two")]
    volumes = [{"name": "v", "emptyDir": {}}]
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": containers, "volumes": volumes}}
    deployment = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    for collection, body in (
        (
            "/deployments",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": deployment},
        ),
        (
            "/services",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "s"},
                "spec": {"clusterIP": "None", "selector": {"a": "1"}},
            },
        ),
        ("/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}),
    ):
        prefix = APPS if collection == "/deployments" else CORE
        area.post(f"base{collection}", f"{prefix}{collection}?fieldManager=base", body)


_base(MANAGERS)
_CHANCE = random.Random(14)
for _number in range(200):
    _draw(MANAGERS, _CHANCE, _CHANCE.choice([_DEPLOYMENT, _DEPLOYMENT, _SERVICE, _ACCOUNT]), _number)
# More managers than an object may have.
for _number in range(13):
    _body = {"metadata": {"annotations": {f"n{_number}": "x"}}}
    MANAGERS.patch(f"crowd-{_number}", "merge", f"{_ACCOUNT}?fieldManager=m{_number:02}", _body)

# Each case is applied by one manager to an object that another one made.
_MAPS = CORE + "/serviceaccounts"


def _case(name: str, made: Any, *applied: Any, field: str = "secrets") -> None:
    head = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    MERGES.post(f"{name}-made", f"{_MAPS}?fieldManager=maker", {**head, field: made})
    for number, value in enumerate(applied):
        path = f"{_MAPS}/{name}?fieldManager=applier&force=true"
        MERGES.patch(f"{name}-{number}", "apply", path, {**head, field: value}, 0)


def _names(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


_case("order-kept", _names("a", "b", "c"), _names("c", "a"))
_case("order-new-first", _names("a", "b"), _names("x", "a"), _names("x", "b", "a"))
_case("order-new-last", _names("a", "b"), _names("b", "x"), _names("y", "x"))
_case("order-between", _names("a", "b", "c", "d"), _names("d", "x", "b", "y"))
_case("order-prune", _names("a"), _names("x", "a", "y"), _names("y"), _names())
_case("null-list", _names("a"), None, _names("b"), None)
_case("atomic-element", [{"name": "a", "namespace": "1"}], [{"name": "a", "uid": "2"}], [{"name": "a"}])
_case("duplicates-live", _names("a", "a", "b"), _names("b"), _names("a"), _names("b", "c"))
_case("duplicates-applied", _names("a"), _names("b", "b"))
_case("wrong-element", _names("a"), ["b"], [None], {"a": "b"})
_case("missing-key", _names("a"), [{"namespace": "x"}])
_case("scalar", True, False, None, "yes", field="automountServiceAccountToken")
