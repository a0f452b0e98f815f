"""Conversion of custom resources by the webhook of their definition.

The webhook is called without any lock, with a deadline, and an answer has a bounded size. Callers bound what they ask
for at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
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

# Upstream's limit.
_CALL_SECONDS = 30.0


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
        """The objects in this version, by one call; those that are in it stay as they are."""
        schema = self._schema(api_version, "to")
        others = [obj for obj in objects if obj["apiVersion"] != api_version]
        if not others:
            return list(objects)
        try:
            found = iter(await self._ask(others, api_version, schema if prunes else None))
        except ValueError as error:
            raise ConversionError(str(error)) from None
        return [obj if obj["apiVersion"] == api_version else next(found) for obj in objects]

    async def _ask(self, objects: list[Object], api_version: str, schema: Schema | None) -> list[Object]:
        """Raises ValueError and ConversionError."""
        version, uid = review_version(self.review_versions), str(uuid.uuid4())
        body = review_of(list(map(encode, objects)), api_version, uid=uid, version=version)
        try:
            answer = await self.call(self.config, body, _CALL_SECONDS)
        except CallError as error:
            why = str(error)
            if why.endswith("deadline exceeded"):
                # Upstream's limit is the client's own.
                why += " (Client.Timeout exceeded while awaiting headers)"
            raise ValueError(f"conversion webhook for {kind_of(objects[0])} failed: {why}") from None

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
