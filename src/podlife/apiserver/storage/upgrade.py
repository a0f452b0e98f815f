"""Upgrades a store of the earlier format to the current one: adds checksums, in one transaction.

Damage that the earlier format cannot show (a flipped byte inside a text) gets a checksum like everything else; a log
that breaks a rule is rejected, and the file is left unchanged.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path

from podlife.apiserver.storage.database import (
    LOG,
    ROWS_PER_STATEMENT,
    Database,
    as_written,
    first_meta,
    insert_sealed,
    seal,
    write_meta,
)
from podlife.apiserver.storage.records import StoreError
from podlife.apiserver.storage.verification import Inspection


def upgrade(path: Path) -> bool:
    """Upgrade if needed and return whether it was. Raises StoreError if the store is not sound."""
    with closing(Database(path)) as database:
        if database.has_checksums:
            return False
        inspection = Inspection(database.compacted())
        for row in database.rows():
            inspection.visit(row)
    if inspection.problems:
        raise StoreError(f"{path} is damaged, nothing was upgraded: {inspection.problems[0]}")
    try:
        with closing(Database(path, writes=True)) as database, database.transaction():
            _add_checksums(database.connection, inspection.compacted)
    except sqlite3.Error as error:
        raise StoreError(f"{path} could not be upgraded and is as it was: {error}") from error
    return True


def _add_checksums(connection: sqlite3.Connection, compacted: int) -> None:
    connection.execute("ALTER TABLE log RENAME TO old_log")
    connection.execute(LOG)
    rows = connection.execute(
        "SELECT revision, resource, namespace, name, deleted, previous, value FROM old_log ORDER BY revision"
    )
    meta = first_meta() | {"compacted": compacted}
    chain = 0
    while some := [as_written(row) for row in islice(rows, ROWS_PER_STATEMENT)]:
        sealed = seal(some, chain)
        insert_sealed(connection, sealed)
        for revision, *_, checksum, chain, _ in sealed:
            if revision <= compacted:
                meta["standing"] += checksum
                meta["chain"] = chain
    connection.execute("DROP TABLE old_log")
    write_meta(connection, meta)
