"""`podlife ui` as a process, and the processes of the browser that shows it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.component_process import ComponentProcess
from tests.kit.real_parts import free_port


def page_address(said: str) -> str:
    """The address of the page with its token, as it was printed last."""
    found = re.findall(r"http://127\.0\.0\.1:\d+/\S*token=[^\s#]+", said)
    assert found, said
    return str(found[-1])


class UiProcess(ComponentProcess):
    def __init__(self, folder: Path, *flags: str, name: str = "ui") -> None:
        super().__init__(folder, name, ready="token=")
        self._flags = ("--port", str(free_port()), *flags)

    @property
    def arguments(self) -> list[str]:
        return ["ui", *self._flags]

    @property
    def address(self) -> str:
        return page_address(self.said)

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def browser_pids() -> list[int]:
    """All processes of Chromium that this process has started."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                head, _, rest = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(folder.name)] = (int(rest.split()[1]), head.partition("(")[2])
    found: list[int] = []
    for pid, (_, name) in parents.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above][0]
        if above == os.getpid() and "chrom" in name:
            found.append(pid)
    return found


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """While the block lasts they do not run, and their connections stay open."""
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
