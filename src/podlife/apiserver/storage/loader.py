"""Loads a store from its files into memory, and rejects files that are not what was written.

The files are opened read-only until all of them have been verified: a rejection leaves them unchanged, including the
write-ahead log that SQLite would otherwise checkpoint and remove.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing

from podlife.apiserver.storage.data_dir import DataDir
from podlife.apiserver.storage.database import Database, NotAStoreError
from podlife.apiserver.storage.high_water_mark import HighWaterMark, MarkReading, read_mark
from podlife.apiserver.storage.state import StoreState
from podlife.apiserver.storage.store import StoreError
from podlife.apiserver.storage.upgrade import upgrade
from podlife.apiserver.storage.verification import DamageAssessment, Verification

log = logging.getLogger(__name__)


def load(folder: DataDir, state: StoreState, now: float) -> HighWaterMark:
    """Fill a state from the store of a folder, created or upgraded if needed; returns the high-water mark. Raises
    StoreError if the store cannot be trusted."""
    folder.ensure_database()
    try:
        is_upgraded = upgrade(folder.database)
        reading = MarkReading(None) if is_upgraded else read_mark(folder.mark)
        with closing(Database(folder.database)) as database:
            mark = _load(folder, database, reading, state, now)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{folder.database} cannot be read: {error}; {_what_to_do(folder)}") from error
    except NotAStoreError as error:
        raise StoreError(f"{error}; {_what_to_do(folder)}") from error
    if reading.problem and mark.revision:
        log.warning("%s", reading.problem)
    for title in state.set_aside:
        log.warning("%s in %s is damaged and was set aside", title, folder.database)
    return mark


def _load(
    folder: DataDir, database: Database, reading: MarkReading, state: StoreState, now: float
) -> HighWaterMark:
    meta = database.meta()
    verification = Verification(meta)
    state.load(meta["compacted"], verification.trusted(database.rows()), now)
    verdict = verification.verdict()
    loss = reading.find_loss(meta["identity"], verification.revision, database.chain_at)
    _refuse_damage(folder, verification, verdict, loss)
    if verdict.set_aside:
        # A damaged row leaves a gap in the history, which begins again after the last of them.
        rows = Verification(meta).trusted(database.rows())
        state.load(max(meta["compacted"], verdict.history_lost_until), rows, now)
        state.set_aside = [row.title for row in verdict.set_aside]
    return HighWaterMark(meta["identity"], verification.revision, verification.chain)


def _refuse_damage(folder: DataDir, verification: Verification, verdict: DamageAssessment, loss: str) -> None:
    # Damage to a single row may break the chain as well; the row is the better explanation.
    problems = [f"{row.title} does not match its checksum" for row in verdict.fatal]
    problems += [*verification.problems, *([loss] if loss else [])]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StoreError(f"{folder.database} is damaged: {problems[0]}{more}; {_what_to_do(folder)}")


def _what_to_do(folder: DataDir) -> str:
    command, data = "podlife apiserver", f"--data {folder.path}"
    return (
        f"`{command} check {data}` shows all of it, `{command} restore FILE {data}` replaces it by a backup; without "
        f"one, `{command} salvage FILE {data}` writes a backup of what is sound"
    )
