"""Who a machine is: always from the controller's record, whatever the agent says."""

from __future__ import annotations

from datetime import datetime

from fleet_contracts.capabilities import (
    Fact,
    Identity,
    Observed,
    Origin,
    WorkerCapabilities,
)
from fleet_contracts.language import mark


def with_identity(
    picture: WorkerCapabilities,
    *,
    name: str,
    owner: str,
    provider: str | None,
    recorded_at: datetime,
) -> WorkerCapabilities:
    """Return *picture* with the record's identity in place of whatever it claimed.

    Its hardware stays the machine's own word.
    """
    observed = Observed(
        origin=Origin.RECORD,
        source=mark("the controller's record"),
        observed_at=recorded_at,
    )
    return picture.model_copy(
        update={
            "identity": Identity(
                name=Fact(value=name, observed=observed),
                owner=Fact(value=owner, observed=observed),
                provider=Fact(value=provider, observed=observed),
            )
        }
    )
