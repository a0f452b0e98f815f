"""Users, and those that every cluster has."""

from __future__ import annotations

from dataclasses import dataclass

AUTHENTICATED = "system:authenticated"
# Group of users that hold a bootstrap token and have no other rights.
BOOTSTRAPPERS = "system:bootstrappers"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class UserInfo:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()

    @property
    def node_name(self) -> str:
        """Name of the node this user is the identity of; empty for other users."""
        if self.name.startswith("system:node:") and "system:nodes" in self.groups:
            return self.name.removeprefix("system:node:")
        return ""

    def authenticated(self) -> UserInfo:
        """Return this user as a member of `system:authenticated`."""
        if AUTHENTICATED in self.groups:
            return self
        return UserInfo(self.name, self.uid, (*self.groups, AUTHENTICATED))


ADMIN = UserInfo("admin", "admin", (MASTERS,))
CONTROLLERS = UserInfo("system:kube-controller-manager", "controllers")
ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
