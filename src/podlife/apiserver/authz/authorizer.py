"""Authorization: a decision from a user and the attributes of a request, without I/O.

Members of `system:masters` may do everything. Then, as with `--authorization-mode=Node,RBAC`: a node may do what the
Node authorizer allows, and every user what roles allow that are bound to it or to its groups.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.apiserver.authn import MASTERS, UserInfo
from podlife.apiserver.authz.attributes import ALLOWED, Attributes, Decision, NodeView
from podlife.apiserver.authz.node_authorizer import authorize_node
from podlife.apiserver.authz.rbac import RbacPolicy
from podlife.errors import ForbiddenError

_NO_NODE_RULES = "node authorizer does not support user rule resolution"


class Authorizer:
    def __init__(self, nodes: NodeView, policy: RbacPolicy) -> None:
        self._nodes = nodes
        self.policy = policy

    def authorize(self, user: UserInfo, attributes: Attributes) -> Decision:
        """Decide whether the user may do it."""
        if MASTERS in user.groups:
            return ALLOWED
        if not user.node_name:
            return self.policy.authorize(user, attributes)
        by_node = authorize_node(user.node_name, attributes, self._nodes)
        if by_node.allowed:
            return by_node
        decision = self.policy.authorize(user, attributes)
        if decision.allowed or not by_node.reason:
            return decision
        return Decision(False, "\n".join(filter(None, (by_node.reason, decision.reason))))

    def is_costly(self, user: UserInfo, namespace: str) -> bool:
        """Whether a decision belongs into a worker thread."""
        return MASTERS not in user.groups and self.policy.is_costly(user, namespace)

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Object], bool, list[str]]:
        """Return the user's rules in a namespace, whether they are complete, and errors. A node may do more, depending
        on its pods."""
        rules, omitted, missing = self.policy.rules_for(user, namespace)
        too_many = f"too many rules: those of {omitted} roles are omitted" if omitted else ""
        errors = (_NO_NODE_RULES if user.node_name else "", too_many, missing)
        return rules, not (user.node_name or omitted), list(filter(None, errors))


def forbidden(user: UserInfo, attributes: Attributes, decision: Decision) -> ForbiddenError:
    """Return the 403 error in upstream's words."""
    subject = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    if subject and attributes.name:
        subject += f' "{attributes.name}"'
    text = f"{subject} is forbidden: " if subject else "forbidden: "
    text += _forbidden_message(user, attributes)
    if decision.reason:
        text += f": {decision.reason}"
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ForbiddenError(text, details={key: value for key, value in details.items() if value})


def _forbidden_message(user: UserInfo, attributes: Attributes) -> str:
    if not attributes.resource:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    else:
        where = (
            f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        )
        text = (
            f'User "{user.name}" cannot {attributes.verb} resource "{attributes.target}" '
            f'in API group "{attributes.group}" {where}'
        )
    # As upstream: an answer must not look like HTML to a browser.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
