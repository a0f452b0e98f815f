"""Core v1 Events as client-go's recorder creates them: correlated, counted, aggregated.

    recorder = Recorder(client, "podlife-gc", clock=SystemClock())
    recorder.event({"kind": "Pod", "namespace": "ns", "name": "p"}, "Normal", "Collected", "why")

`event` neither waits nor raises; `run` sends. Events that exceed the limits are dropped and counted: a server that
accepts no events never stops or delays a controller.
"""

from podlife.events.correlator import Correlated, Correlator, CorrelatorSettings
from podlife.events.recorder import Recorder, RecorderCounts

__all__ = ["Correlated", "Correlator", "CorrelatorSettings", "Recorder", "RecorderCounts"]
