"""How a machine joins: a single-use code against a token, and a try of its address.

The machine listens for a moment and the controller connects with a nonce.  Only the
machine that asked knows the key with which the nonce is answered, so an address at
which somebody else listens proves nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Final

from pydantic import Field

from fleet_contracts.base import Message
from fleet_contracts.protocol import AddressOffer
from fleet_contracts.reasons import Explanation


GREETING: Final = "fleet-address"
"""The first word of the controller's only line: `fleet-address NONCE`."""
LONGEST_LINE: Final = 200
"""Bytes, of the nonce's line and of its answer."""
LISTEN_SECONDS: Final = 30.0
"""How long a machine listens for the controller's try."""


class EnrolRequest(Message):
    """What a machine says to join."""

    code: Annotated[str, Field(min_length=1, max_length=200, repr=False)]
    offer: AddressOffer | None = None
    """Where it can be tried at once; None: it listens nowhere."""


class Enrolled(Message):
    """What a machine is told that has joined."""

    machine: str
    owner: str
    token: Annotated[str, Field(repr=False)]
    explanation: Explanation | None = None
    """Why its address was not approved, so that it gets no work yet."""


def answer_to(nonce: str, key: str) -> str:
    """Return what a machine answers to *nonce*, made with the *key* that it told."""
    return hmac.new(key.encode(), nonce.encode(), hashlib.sha256).hexdigest()
