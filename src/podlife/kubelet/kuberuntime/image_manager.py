"""Ensures that a container's image is present: pull policy, backoff after failures, events.

A failed pull is retried by the first caller after the backoff; until then callers get the error of the last attempt.
"""

from __future__ import annotations

import asyncio
import re
from datetime import datetime

from podlife.clock import Clock
from podlife.kubelet.kuberuntime.backoff import Backoff
from podlife.kubelet.kuberuntime.reason_cache import StartFailure
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.runtime import ContainerRuntimeError, ImagePullError, Runtime, WithoutImages

_INITIAL_SECONDS, _MAX_SECONDS = 10.0, 300.0

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*"
_REFERENCE = re.compile(
    rf"(?:(?:{_HOST}|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?P<tag>:[\w][\w.-]{0,127})?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


class ImageError(ContainerRuntimeError):
    """The image is not present; `failure` is shown in the container's waiting state."""

    def __init__(self, failure: StartFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ImageManager:
    def __init__(self, runtime: Runtime, clock: Clock, events: PodEvents) -> None:
        self._runtime = runtime
        self._clock = clock
        self._events = events
        self._backoff = Backoff(initial_seconds=_INITIAL_SECONDS, max_seconds=_MAX_SECONDS)
        # The error and time of the last failed pull, by UID and image.
        self._last_failures: dict[str, tuple[str, datetime]] = {}

    async def ensure(self, pod: Pod, container: Container) -> str:
        """The reference of the container's image; raises `ImageError`."""
        image = container.get("image") or ""
        reference = self._with_tag(pod, container, image)
        if isinstance(self._runtime, WithoutImages):
            return await self._runtime.pull_image(reference)
        default = "Always" if reference.endswith(":latest") else "IfNotPresent"
        policy = container.get("imagePullPolicy") or default
        if policy != "Always":
            found = await self._find(pod, container, image, reference)
            if found is not None:
                message = (
                    f'Container image "{image}" already present on machine and can be accessed by the pod'
                )
                self._events.container(pod, container, "Pulled", message)
                return found
            if policy == "Never":
                message = f'Container image "{image}" is not present with pull policy of Never'
                self._warn(pod, container, "ErrImageNeverPull", message)
                raise ImageError(StartFailure("ErrImageNeverPull", message))
        return await self._pull(pod, container, image, reference)

    def collect(self) -> None:
        self._backoff.collect(self._clock.now())
        if not len(self._backoff):
            self._last_failures.clear()

    def _with_tag(self, pod: Pod, container: Container, image: str) -> str:
        match = _REFERENCE.fullmatch(image)
        if match is None:
            message = (
                f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
                "invalid reference format"
            )
            self._warn(pod, container, "InspectFailed", message)
            raise ImageError(StartFailure("InvalidImageName", message))
        return image if match["tag"] or match["digest"] else f"{image}:latest"

    async def _find(self, pod: Pod, container: Container, image: str, reference: str) -> str | None:
        try:
            return await self._runtime.find_image(reference)
        except ContainerRuntimeError as error:
            message = f'Failed to inspect image "{image}": {error}'
            self._warn(pod, container, "InspectFailed", message)
            raise ImageError(StartFailure("ImageInspectError", message)) from error

    async def _pull(self, pod: Pod, container: Container, image: str, reference: str) -> str:
        key, now = f"{pod['metadata']['uid']}_{image}", self._clock.now()
        if (last := self._last_failures.get(key)) is not None and self._backoff.is_waiting(key, last[1], now):
            message = f'Back-off pulling image "{image}"'
            self._events.container(pod, container, "BackOff", message)
            raise ImageError(StartFailure("ImagePullBackOff", f"{message}: {last[0]}"))
        self._events.container(pod, container, "Pulling", f'Pulling image "{image}"')
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            found = await self._runtime.pull_image(reference)
        except ContainerRuntimeError as error:
            self._warn(pod, container, "Failed", f'Failed to pull image "{image}": {error}')
            failed_at = self._clock.now()
            self._backoff.record_retry(key, failed_at, failed_at)
            reason = error.reason if isinstance(error, ImagePullError) else "ErrImagePull"
            self._last_failures[key] = (f"{reason}: {error}", failed_at)
            raise ImageError(StartFailure(reason, str(error))) from error
        self._last_failures.pop(key, None)
        elapsed = f"{int((loop.time() - began) * 1000)}ms"
        message = f'Successfully pulled image "{image}" in {elapsed} ({elapsed} including waiting).'
        self._events.container(pod, container, "Pulled", message)
        return found

    def _warn(self, pod: Pod, container: Container, reason: str, message: str) -> None:
        self._events.container(pod, container, reason, message, is_warning=True)
