"""Writes the status of a Job.

A write carries the UID and the resourceVersion of the state it was computed from. After a conflict it is not applied
to the newer state, unlike the status of other workloads: counts are only valid for the state they were counted from.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.client import JOBS, Client
from podlife.controller import OwnWrites
from podlife.workloads.job.views import Job
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.status import changed_fields
from podlife.workloads.views import Status

_UNCOUNTED = "uncountedTerminatedPods"


class JobStatusWriter:
    def __init__(self, client: Client, writes: OwnWrites, job: Job) -> None:
        self._client = client
        self._writes = writes
        self._job = job
        self._resource_version = job.metadata.resource_version
        self.status: Status = job.status

    async def write(self, status: Status) -> bool:
        """Make it the Job's status; says whether there was anything to write. Raises ConflictError when somebody was
        faster, NotFoundError when the Job is gone, and what else the server answered."""
        patch = changed_fields(self.status, status)
        if not patch:
            return False
        if _UNCOUNTED in patch:
            # A merge patch would leave alone what it does not name.
            named = patch[_UNCOUNTED] or {}
            patch[_UNCOUNTED] = {how: named.get(how) for how in ("succeeded", "failed")}
        metadata = self._job.metadata
        about = {"uid": metadata.uid, "resourceVersion": self._resource_version}
        body: Object = {"metadata": about, "status": patch}
        written: Object = await self._client.patch(
            JOBS, metadata.name, body, metadata.namespace, subresource="status"
        )
        self._writes.note(key_of(self._job), JOBS, written)
        self._resource_version = written["metadata"]["resourceVersion"]
        self.status = written.get("status") or {}
        return True
