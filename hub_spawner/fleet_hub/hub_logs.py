"""What JupyterHub's own log lines must not tell."""

from __future__ import annotations

import logging
from typing import Final

from typing_extensions import override


STREAM_CLOSED: Final = "Stream closed while handling"


class _NoQueries(logging.Filter):
    """Takes the query out of the one line that JupyterHub writes with it.

    It hides secrets in the addresses of its access log, but not in this line, and the
    query of an event stream holds the page's proof against forged requests.
    """

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith(STREAM_CLOSED) and isinstance(record.args, tuple):
            record.args = tuple(str(each).partition("?")[0] for each in record.args)
        return True


_NO_QUERIES: Final = _NoQueries()


def hide_queries(logger: logging.Logger) -> None:
    """Keep the queries of event streams out of *logger*; may be called repeatedly."""
    if _NO_QUERIES not in logger.filters:
        logger.addFilter(_NO_QUERIES)
