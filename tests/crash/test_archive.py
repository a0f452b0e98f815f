"""A process that archives is killed at any moment: what it has said is kept is there, whole; and the count is right."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import msgspec

from podlife.podgc.archive import ArchiveFolder, ArchiveLimits
from podlife.podgc.archive.entry import decode_entry
from podlife.podgc.archive.ledger import FILE, Holdings
from tests.kit.real_parts import ROOT
from tests.unit.podgc.archive.entries import NOW, files_in

ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "4"))
SECONDS = 120
# Says each UID once its entry is kept; four threads at once, as in the collector.
WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from podlife.podgc.archive import ArchiveFolder, ArchiveLimits
from podlife.podgc.archive.entry import encode_entry
from podlife.podgc.archive.archive import place_of
from tests.unit.podgc.archive.entries import NOW, make_entry
folder = ArchiveFolder(Path(sys.argv[1]), ArchiveLimits())
folder.open(NOW)
numbers = count(int(sys.argv[2]))
def work(_):
    for number in numbers:
        uid = f"uid-{number}"
        folder.put(place_of("default", "web", uid), encode_entry(make_entry(uid=uid, log_bytes=3000)), NOW)
        sys.stdout.write(uid + "\\n")
        sys.stdout.flush()
with ThreadPoolExecutor(4) as threads:
    list(threads.map(work, range(4)))
"""


def write_until_killed(folder: Path, start: int, lines: int) -> set[str]:
    """What it said was kept, before it was killed in the middle of something."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(start)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        assert all(said), "it ended by itself"
        process.kill()
        rest, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait(SECONDS)
    # The last line may have been cut off; whole lines were said after their entries were kept.
    whole = "".join(said) + rest
    return {line.removesuffix("\n") for line in whole.splitlines(keepends=True) if line.endswith("\n")}


def test_what_was_said_to_be_kept_is_there_whole_after_every_kill(tmp_path: Path) -> None:
    chance = random.Random(7)
    kept: set[str] = set()
    for round_ in range(ROUNDS):
        kept |= write_until_killed(tmp_path, round_ * 1_000_000, chance.randint(1, 60))
        entries = list(tmp_path.glob("default/*"))
        for path in entries:
            decode_entry(path.read_bytes())
        assert kept <= {path.name.removesuffix(".jsonl.gz").partition("_")[2] for path in entries}
        # The next one finds out, however the last one ended.
        ArchiveFolder(tmp_path, ArchiveLimits()).check(NOW)
        check_count(tmp_path, entries)
    folder = ArchiveFolder(tmp_path, ArchiveLimits())
    folder.open(NOW)
    assert list((tmp_path / ".partial").iterdir()) == []
    folder.prune(NOW + timedelta(days=31))
    assert files_in(tmp_path) == {}


def check_count(folder: Path, entries: list[Path]) -> None:
    known = msgspec.json.decode((folder / FILE).read_bytes(), type=Holdings)
    assert (known.entries, known.bytes) == (len(entries), sum(path.stat().st_size for path in entries))
