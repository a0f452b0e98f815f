"""Access, identity and token reviews: API objects that are answered and never stored.

They serve `kubectl auth can-i`, `auth can-i --list` and `auth whoami`, and kubelets that authenticate and authorize
their own callers. `answer` serves a POST; each other function takes the posted object and returns the answer, or
raises ApiError.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from podlife.api.codec import Object, encode, format_time
from podlife.api.field_errors import FieldError, bad_value, invalid
from podlife.apiserver.authn import Authenticator, UserInfo
from podlife.apiserver.authz import Attributes, Authorizer
from podlife.apiserver.registry import RequestScope, response
from podlife.apiserver.registry.field_managers import track
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import bad_request, read_object
from podlife.apiserver.registry.table import convert
from podlife.apiserver.registry.worker_threads import offload
from podlife.errors import UnauthorizedError
from podlife.wire import Response

_GROUP = "authorization.k8s.io"


async def answer(
    scope: RequestScope, authenticator: Authenticator, authorizer: Authorizer, now: datetime
) -> Response:
    scope.dry_run("CreateOptions")
    to = response.representation(scope, has_tables=False)
    sent = scope.request.body
    body = await offload(lambda: with_type(scope.resource, read_object(scope)), sent)

    def answered() -> bytes:
        review = encode(_review(scope, body, authenticator, authorizer, now))
        return to.finish(convert(scope.resource, review, to, now=now.timestamp()))

    shown = await offload(answered, sent, is_costly=_is_costly(scope, body, authorizer))
    return Response(201, shown, to.media_type, response.headers(scope))


def _is_costly(scope: RequestScope, body: Object, authorizer: Authorizer) -> bool:
    """Whether a small question takes long to answer."""
    plural, spec = scope.resource.plural, body.get("spec") or {}
    if plural == "selfsubjectrulesreviews":
        return True
    user = scope.user if plural.startswith("self") else _subject(spec)
    return authorizer.is_costly(user, (spec.get("resourceAttributes") or {}).get("namespace") or "")


def _review(
    scope: RequestScope, body: Object, authenticator: Authenticator, authorizer: Authorizer, now: datetime
) -> Object:
    if body.get("metadata") is not None:
        # Those that answer with the review that was sent answer with its managers, too.
        track(scope, body, None)
    match scope.resource.plural:
        case "selfsubjectaccessreviews":
            return review_access(scope.user, body, authorizer)
        case "selfsubjectrulesreviews":
            return review_rules(scope.user, body, authorizer)
        case "subjectaccessreviews":
            return review_subject_access(body, authorizer)
        case "localsubjectaccessreviews":
            return review_subject_access(body, authorizer, namespace=scope.namespace)
        case "tokenreviews":
            return review_token(body, authenticator)
        case _:
            return review_self(scope.user, now)


def review_access(user: UserInfo, body: Object, authorizer: Authorizer) -> Object:
    """SelfSubjectAccessReview."""
    spec = body.get("spec") or {}
    _check("SelfSubjectAccessReview", _spec_errors(spec))
    return _with_status(body, _access_status(user, spec, authorizer))


def review_subject_access(body: Object, authorizer: Authorizer, *, namespace: str = "") -> Object:
    """SubjectAccessReview or, with a namespace, LocalSubjectAccessReview."""
    spec = body.get("spec") or {}
    errors = _spec_errors(spec)
    if not spec.get("user") and not spec.get("groups"):
        errors.append(bad_value("spec.user", "", "at least one of user or group must be specified"))
    if namespace:
        errors += _local_errors(spec, namespace)
    _check("LocalSubjectAccessReview" if namespace else "SubjectAccessReview", errors)
    return _with_status(body, _access_status(_subject(spec), spec, authorizer))


def _subject(spec: Object) -> UserInfo:
    return UserInfo(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()))


def review_rules(user: UserInfo, body: Object, authorizer: Authorizer) -> Object:
    """SelfSubjectRulesReview."""
    namespace = (body.get("spec") or {}).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules, is_complete, errors = authorizer.rules_for(user, namespace)
    status: Object = {
        "resourceRules": _rules_with("resources", rules, "verbs", "apiGroups", "resources", "resourceNames"),
        "nonResourceRules": _rules_with("nonResourceURLs", rules, "verbs", "nonResourceURLs"),
        "incomplete": not is_complete,
    }
    if errors:
        status["evaluationError"] = f"[{', '.join(errors)}]" if len(errors) > 1 else errors[0]
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def _rules_with(field: str, rules: list[Object], *fields: str) -> list[Object]:
    return [{each: rule[each] for each in fields if rule.get(each)} for rule in rules if rule.get(field)]


def review_self(user: UserInfo, now: datetime) -> Object:
    """SelfSubjectReview."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": format_time(now)},
        "status": {"userInfo": user.to_object()},
    }


def review_token(body: Object, authenticator: Authenticator) -> Object:
    """TokenReview."""
    spec = body.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    try:
        found = authenticator.find_token(token, spec.get("audiences") or ())
    except UnauthorizedError as error:
        return _with_status(body, {"user": {}, "error": f"[invalid bearer token, {error}]"})
    if found is None:
        return _with_status(body, {"user": {}, "error": "invalid bearer token"})
    status: Object = {"authenticated": True, "user": found.user.to_object()}
    if found.audiences:
        status["audiences"] = list(found.audiences)
    return _with_status(body, status)


def _asked(spec: Object) -> Attributes:
    """The attributes in a review's spec; all of them are optional."""
    resource: Any = spec.get("resourceAttributes")
    if resource is None:
        path = spec.get("nonResourceAttributes") or {}
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    selector = _selector_text(resource.get("fieldSelector") or {})
    return Attributes(**{field: resource.get(field, "") for field in fields}, field_selector=selector)


def _selector_text(selector: Object) -> str:
    if text := selector.get("rawSelector"):
        return str(text)
    terms = [
        f"{item.get('key')}={(item.get('values') or [''])[0]}"
        for item in selector.get("requirements") or ()
        if item.get("operator") == "In" and len(item.get("values") or ()) == 1
    ]
    return ",".join(terms)


def _access_status(user: UserInfo, spec: Object, authorizer: Authorizer) -> Object:
    decision = authorizer.authorize(user, _asked(spec))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _spec_errors(spec: Object) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        reason = "cannot be specified in combination with resourceAttributes"
        return [bad_value("spec.nonResourceAttributes", path, reason)]
    if resource is None and path is None:
        reason = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [bad_value("spec.resourceAttributes", None, reason)]
    return []


def _local_errors(spec: Object, namespace: str) -> list[FieldError]:
    errors = []
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        field = "spec.resourceAttributes.namespace"
        errors.append(bad_value(field, resource.get("namespace", ""), "must match metadata.namespace"))
    if spec.get("nonResourceAttributes") is not None:
        field, value = "spec.nonResourceAttributes", spec["nonResourceAttributes"]
        errors.append(bad_value(field, value, "disallowed on this kind of request"))
    return errors


def _check(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid(kind, _GROUP, "", errors)


def _with_status(body: Object, status: Object) -> Object:
    kept = {field: body.get(field) or {} for field in ("metadata", "spec")}
    return {"kind": body.get("kind"), "apiVersion": body.get("apiVersion"), **kept, "status": status}
