"""Where a machine joins: its single-use code against a token of its own."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from tornado.web import HTTPError
from typing_extensions import override

from fleet_contracts.enrolment import Enrolled, EnrolRequest
from fleet_hub.controller import enrolling, reaching
from fleet_hub.controller.errors import CodeRefusedError
from fleet_hub.service.base import NoXsrf
from fleet_hub.service.transport import is_protected


class EnrolHandler(NoXsrf):
    """For whoever has a code; the code is all the proof that is needed."""

    @override
    def prepare(self) -> None:
        """Refuse what others could have read on the way."""
        if not is_protected(self.request, self.core.settings.trusted_networks):
            raise HTTPError(
                HTTPStatus.UPGRADE_REQUIRED,
                reason="Enrolment needs https, so that nobody reads the machine's token",
            )

    @override
    async def post(self) -> None:
        """Take the machine in, try its address, and tell both."""
        request = self.body(EnrolRequest)
        record, token = enrolling.exchange(self.core, request.code)
        fault = None
        if request.offer is not None:
            fault = await reaching.try_offer(self.core, record.name, request.offer)
        self.answer(
            Enrolled(
                machine=record.name, owner=record.owner, token=token, explanation=fault
            )
        )

    @override
    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say the same of every code that is not valid."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, CodeRefusedError):
            self.set_status(HTTPStatus.FORBIDDEN)
            self.answer(
                {
                    "status": 403,
                    "message": "The code is not valid: it was used, has expired, or "
                    "was never given. Ask for another one on the fleet page.",
                }
            )
            return
        super().write_error(status_code, **kwargs)
