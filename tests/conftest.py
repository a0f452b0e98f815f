"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is. What else holds (in CI the same examples every time) stays.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")


def pytest_configure() -> None:
    # As in the Makefile: without bytecode on the disk every worker rewrites every test, and every program that a test
    # starts compiles podlife anew; collecting alone takes three times as long.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # What whoever runs the tests has set for commands of their own: no test may write to their archive.
    for name in ("PODLIFE_ARCHIVE", "PODLIFE_GC_POLICY"):
        os.environ.pop(name, None)
    # Tests that are run in the background, or to outlive their terminal, have these signals ignored, and every program
    # that they start would inherit that: here what is tested begins as from a shell.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two workers more than processors: two workers on two processors waited a third of their time for programs that
    they had started. From that one computes that three leave 13 % of the processors' time unused, four 4 %."""
    return (os.cpu_count() or 1) + 2


# Folders whose tests start programs, or go through as many rounds as somebody asks for: seconds for each test.
_PATIENCE_SECONDS = {"crash": 1800, "fuzz": 3600, "property": 1800, "real": 1800, "chaos": 1800}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        found = [_PATIENCE_SECONDS[part] for part in item.path.parts if part in _PATIENCE_SECONDS]
        if found and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(max(found)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Thousands of tests and what they import stay until the end: no look for garbage goes through them, now or later.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        # As podlife's own processes (daemons.event_loop): a cluster in a test allocates much and leaves few cycles, but
        # with Python's own thresholds about a tenth of its time goes to looking for them.
        gc.set_threshold(50_000, 20, 50)
