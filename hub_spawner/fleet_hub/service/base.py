"""What all handlers share: plain answers, and one way to say no."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from tornado.web import HTTPError, RequestHandler
from typing_extensions import override

from fleet_contracts.reasons import Reason
from fleet_hub.controller.errors import (
    ControllerError,
    RequestRefusedError,
    StoreWriteError,
    UnknownWorkloadError,
)
from fleet_hub.controller.lifecycle import hash_of
from fleet_hub.service.context import Context
from fleet_hub.service.tokens import same


log = structlog.get_logger()

MAX_WAIT_SECONDS: Final = 60.0
_Body = TypeVar("_Body", bound=BaseModel)

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; form-action 'self'; base-uri 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class FleetHandler(RequestHandler):
    """A handler with the context, JSON answers and the service's headers."""

    @override
    def initialize(self, *, context: Context) -> None:
        self.context = context
        self.core = context.core

    @override
    def set_default_headers(self) -> None:
        for name, value in SECURITY_HEADERS.items():
            self.set_header(name, value)

    def answer(self, content: BaseModel | dict[str, Any]) -> None:
        """Finish with JSON."""
        self.set_header("Content-Type", "application/json")
        if isinstance(content, BaseModel):
            self.finish(content.model_dump_json(by_alias=True))
        else:
            self.finish(json.dumps(content))

    def body(self, model: type[_Body]) -> _Body:
        """Return the request's body.

        Raises:
            HTTPError: 400; it is not one.
        """
        try:
            return model.model_validate_json(self.request.body)
        except ValidationError as error:
            # The input is left out: it may hold a secret.
            fields = sorted({".".join(map(str, f["loc"])) for f in error.errors()})
            raise HTTPError(
                400, log_message="body not understood", reason=_names(fields)
            ) from None

    def wait_seconds(self, default: float = 0.0) -> float:
        """Return how long the client lets us wait.

        Raises:
            HTTPError: 400; it is no number.
        """
        return min(max(self.number("wait", default), 0.0), MAX_WAIT_SECONDS)

    def number(self, name: str, default: float) -> float:
        """Return a number from the query.

        Raises:
            HTTPError: 400; it is none.
        """
        text = self.get_query_argument(name, "")
        try:
            value = float(text) if text else default
        except ValueError:
            raise HTTPError(400, reason=f"{name} is no number") from None
        if value != value or abs(value) > 2**53:  # noqa: PLR0124 - only NaN differs from itself
            raise HTTPError(400, reason=f"{name} is no number")
        return value

    @override
    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, HTTPError | ControllerError):
            log.error(
                "request failed", path=self.request.path, exc_info=(typ, value, tb)
            )

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer in JSON; what went wrong inside is for the log."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        content: dict[str, Any] = {"status": status_code, "message": self._reason}
        if isinstance(error, RequestRefusedError):
            self.set_status(409)
            content = {
                "status": 409,
                "reason": error.explanation.reason.value,
                "message": error.explanation.detail or error.explanation.reason.value,
            }
        elif isinstance(error, UnknownWorkloadError):
            self.set_status(404)
            content = {"status": 404, "message": "There is no such thing here."}
        elif isinstance(error, StoreWriteError):
            self.set_status(503)
            content = {
                "status": 503,
                "reason": Reason.CONTROLLER_UNREACHABLE.value,
                "message": "The controller cannot write its store; nothing was changed.",
            }
            log.error("store not written", fault=str(error))
        self.answer(content)


def _names(fields: list[str]) -> str:
    """Return field names for an HTTP status line: printable, and short."""
    text = ", ".join(fields[:5]) or "no JSON"
    return (
        "not understood: "
        + "".join(c if c.isalnum() or c in "._, " else "?" for c in text)[:200]
    )


class NoXsrf(FleetHandler):
    """Authorised by a header that no other site's page can send: needs no cookie."""

    @override
    def check_xsrf_cookie(self) -> None:
        return


class SpawnerHandler(NoXsrf):
    """For the Hub's own process alone, which shows the spawner's secret."""

    @override
    def prepare(self) -> None:
        presented = self.request.headers.get("Authorization", "")
        if not same(presented, f"Bearer {self.context.spawner_secret}"):
            raise HTTPError(401, log_message="wrong spawner secret")


class TokenHandler(NoXsrf):
    """For whoever holds a token of one workload's timeline."""

    workload: str

    @override
    def prepare(self) -> None:
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        workload = self._workload_of(token.strip()) if scheme == "Fleet" else None
        if workload is None:
            self.set_header("WWW-Authenticate", "Fleet")
            raise HTTPError(401, reason="The timeline token is missing or was revoked")
        self.workload = workload

    def _workload_of(self, token: str) -> str | None:
        viewed = self.context.view_tokens.workload_of(token)
        if viewed is not None:
            return viewed if viewed in self.core.model.workloads else None
        record = self.core.model.by_token_hash(hash_of(token)) if token else None
        return record.id if record is not None else None
