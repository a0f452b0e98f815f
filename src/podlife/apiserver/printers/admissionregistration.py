"""Webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, name
from podlife.apiserver.resource import Printer

_GROUP = "admissionregistration.k8s.io"
_UNSET = "<unset>"


def _webhook_configuration(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    rules = spec.get("validations") or spec.get("mutations") or ()
    kind = spec.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    return [name(obj), len(rules), shown, age(obj, now)]


def _binding(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    return [name(obj), spec.get("policyName", ""), _params(spec.get("paramRef") or {}), age(obj, now)]


def _params(reference: Object) -> str:
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if (selector := reference.get("selector")) is None:
        return _UNSET
    # As Go prints it.
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    expressions = f"[]LabelSelectorRequirement{{{requirements}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{expressions},}}"


MUTATING_WEBHOOKS = Printer(columns(f"mutatingwebhookconfigurations.{_GROUP}"), _webhook_configuration)
VALIDATING_WEBHOOKS = Printer(columns(f"validatingwebhookconfigurations.{_GROUP}"), _webhook_configuration)
MUTATING_POLICIES = Printer(columns(f"mutatingadmissionpolicies.{_GROUP}"), _policy)
VALIDATING_POLICIES = Printer(columns(f"validatingadmissionpolicies.{_GROUP}"), _policy)
MUTATING_POLICY_BINDINGS = Printer(columns(f"mutatingadmissionpolicybindings.{_GROUP}"), _binding)
VALIDATING_POLICY_BINDINGS = Printer(columns(f"validatingadmissionpolicybindings.{_GROUP}"), _binding)
