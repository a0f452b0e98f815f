"""Core v1 Events, as client-go's recorder makes them: correlated, counted, aggregated, never in anybody's way.

    recorder = Recorder(client, "podlife-gc", clock=SystemClock())
    recorder.event({"kind": "Pod", "namespace": "ns", "name": "p"}, "Normal", "Collected", "why")

`event` neither waits nor raises; `run` sends. What is told too fast or too often is dropped and counted: a broken
recorder, or a server that takes no events, never stops or slows a controller.
"""

from podlife.events.correlator import Correlated, Correlator, CorrelatorSettings
from podlife.events.recorder import Recorder, RecorderCounts

__all__ = ["Correlated", "Correlator", "CorrelatorSettings", "Recorder", "RecorderCounts"]
