"""POST to the resources that are questions: may I, who am I, whose token is this. Nothing of them is stored."""

from __future__ import annotations

from datetime import datetime

from podlife.api.codec import Object, encode
from podlife.apiserver.authn.authenticator import Authenticator
from podlife.apiserver.authz.authorizer import NodeView
from podlife.apiserver.endpoints import reviews
from podlife.apiserver.registry import response as output
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import read_object
from podlife.apiserver.registry.request_scope import Scope
from podlife.apiserver.registry.table import convert
from podlife.wire import Response

__all__ = ["answer"]


def answer(scope: Scope, authenticator: Authenticator, nodes: NodeView, now: datetime) -> Response:
    scope.dry_run("CreateOptions")
    to = output.representation(scope, has_tables=False)
    body = with_type(scope.resource, read_object(scope))
    answered = encode(_review(scope, body, authenticator, nodes, now))
    shown = to.finish(convert(scope.resource, answered, to, now=now.timestamp()))
    return Response(201, shown, to.media_type, output.headers(scope))


def _review(
    scope: Scope, body: Object, authenticator: Authenticator, nodes: NodeView, now: datetime
) -> Object:
    match scope.resource.plural:
        case "selfsubjectaccessreviews":
            return reviews.review_access(scope.user, body, nodes)
        case "selfsubjectrulesreviews":
            return reviews.review_rules(scope.user, body)
        case "subjectaccessreviews":
            return reviews.review_subject_access(body, nodes)
        case "localsubjectaccessreviews":
            return reviews.review_subject_access(body, nodes, namespace=scope.namespace)
        case "tokenreviews":
            return reviews.review_token(body, authenticator)
        case _:
            return reviews.review_self(scope.user, now)
