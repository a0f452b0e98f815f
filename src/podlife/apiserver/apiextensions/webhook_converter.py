"""Conversion of custom resources by the webhook of their definition.

The webhook is called without any lock. Each call has a deadline and a size, and so has the conversion of a long list,
which takes several calls.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podlife.api import schema as types
from podlife.api.codec import Object, decode_object, encode
from podlife.api.structural import Budget, Schema, TooExpensiveError, default, drop_nulls, prune
from podlife.apiserver.admission.webhooks import Call, CallError, ClientConfig
from podlife.apiserver.apiextensions.conversion_review import (
    converted_objects,
    kind_of,
    review_of,
    review_version,
)
from podlife.apiserver.apiextensions.embedded import coerce_embedded
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import ConversionError

# Upstream's limit for a call, and for a request.
_CALL_SECONDS = 30.0
_LIST_SECONDS = 60.0
# Of the objects of one call.
_MOST_OBJECTS = 500
_MOST_BYTES = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class WebhookConverter:
    """Converts whole objects between the versions of one definition."""

    call: Call
    config: ClientConfig
    review_versions: tuple[str, ...]
    # By API version.
    schemas: Mapping[str, Schema]
    kind: str
    # API version of what was stored without one: before the definition had a webhook.
    oldest: str

    def read(self, value: bytes) -> Object:
        """A stored object in the version in which it is stored; raises ConversionError."""
        obj: Object = {"kind": self.kind, "apiVersion": self.oldest, **decode_object(value)}
        schema = self._schema(obj["apiVersion"], "from")
        _fit(obj, schema)
        try:
            default(obj, schema, Budget())
        except TooExpensiveError as error:
            raise ConversionError(str(error)) from None
        return obj

    async def convert(
        self, objects: Sequence[Object], api_version: str, *, prunes: bool = True
    ) -> list[Object]:
        """The objects in this version; those that are in it stay as they are. Raises ConversionError."""
        schema = self._schema(api_version, "to")
        others = [obj for obj in objects if obj["apiVersion"] != api_version]
        if not others:
            return list(objects)
        answers: list[Object] = []
        try:
            version = review_version(self.review_versions)
            async with asyncio.timeout(_LIST_SECONDS):
                for part, data in _parts(others):
                    answers += await self._ask(part, data, api_version, version, schema if prunes else None)
        except TimeoutError:
            text = f"conversion webhook for {kind_of(others[0])} failed: context deadline exceeded"
            raise ConversionError(text) from None
        except (ValueError, CallError) as error:
            raise ConversionError(str(error)) from None
        found = iter(answers)
        return [obj if obj["apiVersion"] == api_version else next(found) for obj in objects]

    async def _ask(
        self, objects: list[Object], data: list[bytes], api_version: str, version: str, schema: Schema | None
    ) -> list[Object]:
        uid = str(uuid.uuid4())
        body = review_of(data, api_version, uid=uid, version=version)
        try:
            answer = await self.call(self.config, body, _CALL_SECONDS)
        except CallError as error:
            why = str(error)
            if why.endswith("deadline exceeded"):
                # Upstream's limit is the client's own.
                why += " (Client.Timeout exceeded while awaiting headers)"
            raise CallError(f"conversion webhook for {kind_of(objects[0])} failed: {why}") from None

        def read() -> list[Object]:
            found = converted_objects(answer, objects, api_version, uid=uid, version=version)
            if schema is not None:
                for obj in found:
                    _fit(obj, schema)
            return found

        return await offload(read, answer)

    def _schema(self, api_version: str, way: str) -> Schema:
        schema = self.schemas.get(api_version)
        if schema is None:
            raise ConversionError(f"request to convert CR {way} an invalid group/version: {api_version}")
        return schema


def _fit(obj: Object, schema: Schema) -> None:
    """Remove what the schema does not specify."""
    try:
        prune(obj, schema, is_resource=True)
        drop_nulls(obj, schema)
        coerce_embedded(obj, schema)
    except (types.DecodeError, RecursionError) as error:
        raise ConversionError(str(error)) from None


def _parts(objects: Sequence[Object]) -> Iterator[tuple[list[Object], list[bytes]]]:
    part: list[Object] = []
    data: list[bytes] = []
    size = 0
    for obj in objects:
        one = encode(obj)
        if part and (len(part) == _MOST_OBJECTS or size + len(one) > _MOST_BYTES):
            yield part, data
            part, data, size = [], [], 0
        part.append(obj)
        data.append(one)
        size += len(one)
    if part:
        yield part, data
