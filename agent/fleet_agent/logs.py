"""Where the agent's log lines go, and how they look: one line each, as key=value.

Tracebacks are printed without local variables, which could hold a workload's
environment.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog


def configure_logs(level: int, stream: TextIO | None = None) -> None:
    """Send all log records of this process to *stream*, by default standard error."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.LogfmtRenderer(
                    key_order=["timestamp", "level", "logger", "event"],
                    sort_keys=True,
                ),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # Their debug lines quote requests, whose headers hold tokens.
    for chatty in ("tornado", "asyncio", "urllib3"):
        logging.getLogger(chatty).setLevel(max(level, logging.INFO))
