"""The secrets that the service itself makes and checks."""

from __future__ import annotations

import hashlib
import hmac


_VIEW = "view"


class ViewTokens:
    """Tokens that read one workload's timeline and nothing else.

    They are derived, so that none has to be stored: whoever may see the workload gets
    one, and it stays valid as long as the workload is known.
    """

    def __init__(self, secret: bytes) -> None:
        """Sign with *secret*."""
        self._secret = secret

    def make(self, workload: str) -> str:
        """Return the token for *workload*."""
        signature = hmac.new(self._secret, workload.encode(), hashlib.sha256)
        return f"{_VIEW}.{workload}.{signature.hexdigest()}"

    def workload_of(self, token: str) -> str | None:
        """Return the workload that *token* was made for; None: it was not made here."""
        kind, _, rest = token.partition(".")
        workload, _, _ = rest.rpartition(".")
        if kind != _VIEW or not workload:
            return None
        return workload if same(token, self.make(workload)) else None


def same(presented: str, expected: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(presented.encode(), expected.encode())
