"""The suite that every runtime passes, over a real containerd."""

from __future__ import annotations

# The tests are the suite's own; the fixtures `machine` and `runtime` are those of this folder.
from tests.conformance.runtime.test_agent_restarts import *  # noqa: F403
from tests.conformance.runtime.test_containers import *  # noqa: F403
from tests.conformance.runtime.test_events_and_exec import *  # noqa: F403
from tests.conformance.runtime.test_races import *  # noqa: F403
from tests.conformance.runtime.test_sandboxes import *  # noqa: F403
