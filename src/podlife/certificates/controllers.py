"""The three controllers. Keys are the names of requests.

A write carries the version that was decided about, so a request that was denied meanwhile is not signed. The CA is read
for every signature: a new one is used without a restart.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from podlife.api.codec import Object, format_time
from podlife.certificates.signers import SIGNERS, approval_subresources, is_too_old, validity
from podlife.certificates.views import SigningRequest
from podlife.client import DeleteOptions, Ref
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ConfigError, ConflictError, NotFoundError, PodlifeError, TerminalError
from podlife.informer import Informer
from podlife.informer.cache import HasMetadata
from podlife.pki import RequestedCertificate
from podlife.pki.csr import SIGNING_REQUESTS
from podlife.workqueue import RateLimitedQueue

log = logging.getLogger(__name__)

_REVIEWS = Ref(
    "authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False, kind="SubjectAccessReview"
)
# A permission may be granted later.
_REVIEW_AGAIN_SECONDS = 30.0
_CLEAN_SECONDS = 3600.0
_STALE_RETRY_SECONDS = 1.0


class _Requests:
    """Follows all requests; calls `handle` for each that changed."""

    def __init__(
        self, plane: ControlPlane, name: str, handle: Callable[[SigningRequest], Awaitable[Again | None]]
    ) -> None:
        self._informer: Informer[SigningRequest] = plane.informer(SIGNING_REQUESTS, view=SigningRequest)
        self._handle = handle
        self.queue: RateLimitedQueue[str] = RateLimitedQueue(name.replace("-", "_"))
        self.controller = Controller(name, self.queue, self._reconcile)
        self._informer.add_handler(self)

    def on_add(self, obj: HasMetadata) -> None:
        self.queue.add(obj.metadata.name)

    def on_update(self, old: HasMetadata, new: HasMetadata) -> None:
        self.on_add(new)

    def on_delete(self, obj: HasMetadata) -> None:
        self.queue.forget(obj.metadata.name)

    async def _reconcile(self, name: str) -> Again | None:
        request = self._informer.cache.get("", name)
        if request is None:
            return None
        if not self._informer.is_live:
            return Again(_STALE_RETRY_SECONDS)
        try:
            return await self._handle(request)
        except (NotFoundError, ConflictError):
            # Deleted or changed: the new state arrives with its own event.
            return None


class CsrApprovingController:
    """Approves requests of kubelets for their client certificates, if the requester may `create` the subresource
    `nodeclient` or, for the node's own certificate, `selfnodeclient`."""

    name = "certificatesigningrequest-approving-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._clock = plane.clock
        requests = _Requests(plane, self.name, self._approve)
        self.queue, self.controller = requests.queue, requests.controller

    async def run(self) -> None:
        await self.controller.run()

    async def _approve(self, request: SigningRequest) -> Again | None:
        if request.status.certificate or request.has("Approved") or request.has("Denied"):
            return None
        subresources = approval_subresources(request, _parsed(request))
        if not subresources:
            return None
        found = await self._client.get(SIGNING_REQUESTS, request.metadata.name)
        for subresource in subresources:
            if await self._may(found["spec"], subresource):
                own = "self " if subresource == "selfnodeclient" else ""
                message = f"Auto approving {own}kubelet client certificate after SubjectAccessReview."
                _add_condition(found, "Approved", "AutoApproved", message, format_time(self._clock.now()))
                await self._client.update(
                    SIGNING_REQUESTS, _decided_about(found, request), subresource="approval"
                )
                return None
        return Again(_REVIEW_AGAIN_SECONDS)

    async def _may(self, spec: Object, subresource: str) -> bool:
        about = {"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "version": "*"}
        asked: Object = {
            "user": spec.get("username"),
            **{key: spec[key] for key in ("uid", "groups", "extra") if key in spec},
            "resourceAttributes": {**about, "verb": "create", "subresource": subresource},
        }
        review: Object = await self._client.create(_REVIEWS, {"spec": asked})
        return bool((review.get("status") or {}).get("allowed"))


class CsrSigningController:
    """Signs approved requests to the cluster's own signers, with the CA in two PEM files, which may be one. Without
    files nothing is signed."""

    name = "certificatesigningrequest-signing-controller"

    def __init__(
        self,
        plane: ControlPlane,
        *,
        signing_cert_file: str = "",
        signing_key_file: str = "",
        signing_seconds: float = 365 * 86400.0,
    ) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._files = (signing_cert_file, signing_key_file or signing_cert_file)
        self._longest = timedelta(seconds=signing_seconds)
        requests = _Requests(plane, self.name, self._sign)
        self.queue, self.controller = requests.queue, requests.controller

    async def run(self) -> None:
        if self._files[0]:
            self._authority()
        await self.controller.run()

    async def _sign(self, request: SigningRequest) -> Again | None:
        check = SIGNERS.get(request.spec.signer_name)
        is_decided = request.has("Denied") or request.has("Failed") or request.status.certificate
        if not self._files[0] or check is None or is_decided or not request.has("Approved"):
            return None
        problem = check(_parsed(request), request.spec.usages)
        certificate = None if problem else self._certificate(request)
        found = await self._client.get(SIGNING_REQUESTS, request.metadata.name)
        if certificate is None:
            now = format_time(self._clock.now())
            _add_condition(found, "Failed", "SignerValidationFailure", problem, now)
        else:
            found["status"]["certificate"] = base64.b64encode(certificate).decode()
        await self._client.update(SIGNING_REQUESTS, _decided_about(found, request), subresource="status")
        return None

    def _certificate(self, request: SigningRequest) -> bytes:
        from podlife.pki.certificates import sign_as_requested

        now = self._clock.now().replace(microsecond=0)
        begin, end = validity(now, request.spec.expiration_seconds, self._longest)
        pem = base64.b64decode(request.spec.request)
        try:
            return sign_as_requested(*self._authority(), pem, request.spec.usages, begin, end)
        except ValueError as error:
            raise PodlifeError(
                f"certificate signing request {request.metadata.name} not signed: {error}"
            ) from None

    def _authority(self) -> tuple[bytes, bytes]:
        try:
            certificate, key = (Path(each).read_bytes() for each in self._files)
        except OSError as error:
            raise ConfigError(f"cannot read the signing CA {error.filename}: {error.strerror}") from None
        return certificate, key


class CsrCleanerController:
    """Removes requests an hour after they were signed, denied or failed, and a day after they were created or approved
    without that."""

    name = "certificatesigningrequest-cleaner-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._requests: Informer[SigningRequest] = plane.informer(SIGNING_REQUESTS, view=SigningRequest)

    async def run(self) -> None:
        while True:
            if self._requests.is_live:
                now = self._clock.now()
                for each in [each for each in self._requests.cache.list() if is_too_old(each, now)]:
                    await self._delete(each)
            await asyncio.sleep(_CLEAN_SECONDS)

    async def _delete(self, request: SigningRequest) -> None:
        metadata = request.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version)
        try:
            await self._client.delete(SIGNING_REQUESTS, metadata.name, options=options)
        except (NotFoundError, ConflictError):
            return
        except PodlifeError as error:
            log.warning("certificate signing request %s not removed: %s", metadata.name, error)


def _parsed(request: SigningRequest) -> RequestedCertificate:
    """Raises TerminalError: what is in a request never changes."""
    from podlife.pki.certificates import read_request

    try:
        return read_request(base64.b64decode(request.spec.request))
    except ValueError as error:
        raise TerminalError(f'unable to parse csr "{request.metadata.name}": {error}') from None


def _add_condition(found: Object, type_: str, reason: str, message: str, now: str) -> None:
    condition = {"type": type_, "status": "True", "reason": reason, "message": message}
    times = {"lastUpdateTime": now, "lastTransitionTime": now}
    found.setdefault("status", {}).setdefault("conditions", []).append({**condition, **times})


def _decided_about(found: Object, request: SigningRequest) -> Object:
    """Raises ConflictError if the object is no longer the one that was decided about."""
    known = (found["metadata"]["uid"], found["metadata"]["resourceVersion"])
    if known != (request.metadata.uid, request.metadata.resource_version):
        raise ConflictError(f"certificate signing request {request.metadata.name} has changed")
    return found
