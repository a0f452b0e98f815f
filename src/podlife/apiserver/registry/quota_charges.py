"""Charges of a write to the resource quotas of its namespace.

The quotas are locked from the check to the commit, which contains the write and its charges: either both are stored or
none. A namespace without quotas costs a look at an empty list.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from podlife.apiserver.admission import AdmissionRequest
from podlife.apiserver.admission.resource_quota import charge, is_charged
from podlife.apiserver.registry.object_codec import decode_in_part, encoder
from podlife.apiserver.storage import Put, Record, Store

_QUOTAS = "resourcequotas"


@asynccontextmanager
async def charged(
    store: Store, attributes: AdmissionRequest, now: datetime
) -> AsyncGenerator[Sequence[Put], None]:
    """Yields the changes to commit with the write. Raises ForbiddenError if a quota would be exceeded."""
    if not store.count(_QUOTAS) or not is_charged(attributes):
        yield ()
        return
    while True:
        keys = {record.key for record in store.list(_QUOTAS, attributes.namespace)}
        async with store.locked(*keys):
            records = store.list(_QUOTAS, attributes.namespace)
            # Others may have been created during the wait for the locks.
            if all(record.key in keys for record in records):
                yield _charges(attributes, records, now)
                return


def _charges(attributes: AdmissionRequest, records: Sequence[Record], now: datetime) -> list[Put]:
    quotas = [decode_in_part(record.value) for record in records]
    changes = []
    for record, quota, used in zip(records, quotas, charge(attributes, quotas, now), strict=True):
        if used is not None:
            quota["status"]["used"] = {name: str(amount) for name, amount in sorted(used.items())}
            changes.append(Put(record.key, encoder(quota), expected=record.revision))
    return changes
