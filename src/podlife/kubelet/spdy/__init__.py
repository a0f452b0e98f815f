"""SPDY/3.1, as far as remote commands need it: the kubelet's server reads it, the containerd runtime writes it."""

from podlife.kubelet.spdy.frames import (
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
)

__all__ = [
    "Frame",
    "FrameReader",
    "FrameWriter",
    "GoAway",
    "Ping",
    "SpdyError",
    "StreamData",
    "StreamOpened",
    "StreamReset",
]
