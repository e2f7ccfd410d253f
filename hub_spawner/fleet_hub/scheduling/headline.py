"""One answer out of many machines' answers: what is true of all, or the nearest miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleet_contracts.language import mark
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.choice import Request
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.holders import by_its_owner
from fleet_hub.scheduling.nearness import nearness
from fleet_hub.scheduling.whole_fleet import true_of_all


LACKS_ANOTHER: Final = mark("other machines have that, and lack something else")


def fleet_answer(
    fleet: Fleet, request: Request, misses: Sequence[tuple[str, Explanation]]
) -> Explanation:
    """Return why no machine will ever take *request*, given machines' own reasons.

    Asked only where every machine says "never": one that is merely away, drained or not
    known yet keeps the hope.  Nothing is said of "no machine" that is not so of each;
    where none of that is true, the machine that came closest is named with its word.
    """
    if not misses:
        return Explanation(reason=Reason.NO_MACHINES)
    name, headline = max(misses, key=lambda miss: nearness(miss[1].reason))
    shared, others_have_it = true_of_all(fleet, request, headline)
    if shared is not None:
        return shared
    if headline.reason is Reason.OWNER_FORBIDS:
        return by_its_owner(
            headline,
            fleet.entries[name].machine,
            names_visible=fleet.context.names_visible,
        )
    if all(miss == headline for _, miss in misses):
        return headline
    found = headline.model_copy(update={"machine": name})
    if not others_have_it:
        return found
    detail = f"{found.detail}; {LACKS_ANOTHER}" if found.detail else LACKS_ANOTHER
    return found.model_copy(update={"detail": detail})
