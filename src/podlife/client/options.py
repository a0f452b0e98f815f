"""Options of requests; an option that is not set means the server's default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from podlife.api.codec import Object
from podlife.api.selectors import FieldSelector, LabelSelector
from podlife.errors import PodlifeError

# The plain form comes second: servers without the first return it, and no second request is needed.
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"


class PatchType(StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ListOptions:
    label_selector: LabelSelector | str = ""
    field_selector: FieldSelector | str = ""
    # Maximum number of objects per page; 0 for all on one page.
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    # A server that can leaves out everything else of the objects; one that cannot sends them whole.
    metadata_only: bool = False

    def selection(self) -> dict[str, str]:
        return {"labelSelector": str(self.label_selector), "fieldSelector": str(self.field_selector)}

    def parameters(self) -> dict[str, str]:
        return {
            **self.selection(),
            "limit": str(self.limit or ""),
            "continue": self.continue_token,
            # A continue token has its own revision, and servers reject a second one.
            "resourceVersion": "" if self.continue_token else self.resource_version,
            "resourceVersionMatch": "" if self.continue_token else self.resource_version_match,
        }


@dataclass(frozen=True, slots=True)
class WatchOptions:
    label_selector: LabelSelector | str = ""
    field_selector: FieldSelector | str = ""
    # A server sends bookmarks about once a minute: a longer silence means a dead connection.
    read_seconds: float = 150.0
    # How long a watch tries to resume before it raises the error.
    resume_seconds: float = 60.0
    # Server-side timeout of the stream, so that connections spread over servers; 0 for a random one.
    timeout_seconds: int = 0
    most_line_bytes: int = 32 * 1024 * 1024
    # Begin with a streaming list if the server supports it; else with pages.
    streams_list: bool = True
    # Maximum number of objects per page; 0 for all.
    page_limit: int = 500
    # A server that can leaves out everything else of the objects; one that cannot sends them whole.
    metadata_only: bool = False
    # Called when the stream is opened and for each chunk received.
    on_alive: Callable[[], None] | None = None
    # Called with every error that the watch recovers from: a broken or silent stream, an object that does not fit the
    # view. Without it such an object ends the watch.
    report: Callable[[PodlifeError], None] | None = None

    def selection(self) -> dict[str, str]:
        return {"labelSelector": str(self.label_selector), "fieldSelector": str(self.field_selector)}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    dry_run: bool = False
    field_manager: str = ""
    # Strict, Warn or Ignore.
    field_validation: str = ""
    # Server-side apply only: take over fields that others manage.
    force: bool = False

    def parameters(self) -> dict[str, str]:
        return {
            "dryRun": "All" if self.dry_run else "",
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation,
            "force": "true" if self.force else "",
        }


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`uid` and `resource_version` are preconditions: another object of the same name is left alone."""

    grace_period_seconds: int | None = None
    # Orphan, Background or Foreground.
    propagation_policy: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    def body(self) -> Object:
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.grace_period_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation_policy:
            body["propagationPolicy"] = self.propagation_policy
        if any(preconditions.values()):
            body["preconditions"] = {key: value for key, value in preconditions.items() if value}
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


@dataclass(frozen=True, slots=True)
class LogOptions:
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    limit_bytes: int | None = None

    def parameters(self) -> dict[str, str]:
        numbers = {
            "tailLines": self.tail_lines,
            "sinceSeconds": self.since_seconds,
            "limitBytes": self.limit_bytes,
        }
        switches = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        return {
            "container": self.container,
            **{name: "true" for name, is_on in switches.items() if is_on},
            **{name: str(number) for name, number in numbers.items() if number is not None},
        }
