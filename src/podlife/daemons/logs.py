"""The log of a daemon: readable on a terminal, one JSON object per line everywhere else.

Records of all libraries are formatted alike. Standard output is left to results.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO


class _JsonHandler(logging.StreamHandler[TextIO]):
    """Records whether anything has been logged."""

    has_begun = False

    def emit(self, record: logging.LogRecord) -> None:
        self.has_begun = True
        super().emit(record)


def log_the_end(line: str) -> bool:
    """Log what ended the process as the last record of a JSON log; false if the log is not JSON."""
    is_log = any(isinstance(each, _JsonHandler) and each.has_begun for each in logging.getLogger().handlers)
    if is_log:
        logging.getLogger("podlife").error(line)
    return is_log


def set_up_logs(verbosity: int, stream: TextIO | None = None) -> None:
    """Send every record to the stream, as text for a terminal and as JSON otherwise."""
    structlog = _load_structlog()
    stream = stream or sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        _time_stamper(stream),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = (logging.StreamHandler if stream.isatty() else _JsonHandler)(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(stream, verbosity),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.WARNING)
    logging.getLogger("podlife").setLevel(logging.DEBUG if verbosity >= 1 else logging.INFO)


def _load_structlog() -> Any:
    """Import structlog without rich, which it would use for tracebacks and which costs more time and memory than
    everything else."""
    is_hidden = "rich" not in sys.modules
    if is_hidden:
        # Makes the import fail as if rich were not installed.
        sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog
    finally:
        if is_hidden:
            del sys.modules["rich"]
    return structlog


def _time_stamper(stream: TextIO) -> Any:
    import structlog

    if stream.isatty():
        return structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
    return structlog.processors.TimeStamper(fmt="iso", utc=True)


def _renderers(stream: TextIO, verbosity: int) -> list[Any]:
    import structlog

    if stream.isatty():
        console = structlog.dev.ConsoleRenderer(
            colors="NO_COLOR" not in os.environ,
            pad_event_to=0,
            pad_level=False,
            # The default formatter shows the values of variables, and tokens are among them.
            exception_formatter=structlog.dev.plain_traceback,
        )
        return [console] if verbosity else [_leave_out_details, console]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(sort_keys=True),
    ]


def _leave_out_details(_: Any, __: str, record: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """On a terminal, omit fields that repeat the message."""
    for key in ("logger", "pod", "uid", "node"):
        record.pop(key, None)
    return record
