"""What keeps a workload from every place, whatever is free: a quota, or its files."""

from __future__ import annotations

from fleet_contracts.causes import Cause
from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.scheduling.fleet import Fleet
from fleet_hub.scheduling.nearness import is_hopeless
from fleet_hub.scheduling.promises import broken
from fleet_hub.scheduling.quota_watch import QuotaWatch
from fleet_hub.scheduling.quotas import is_of_quota
from fleet_hub.scheduling.survey import FILES_THERE
from fleet_hub.scheduling.waiter import Waiter


def bar_of(fleet: Fleet, quotas: QuotaWatch, waiter: Waiter) -> Explanation | None:
    """Return what keeps *waiter* from being placed anywhere now; None: nothing does."""
    return _no_files(fleet, waiter) or quotas.exceeded_by(waiter)


def loss_by(fleet: Fleet, waiter: Waiter, bar: Explanation) -> Explanation | None:
    """Return that *bar* takes the promise of *waiter* too; None: it stands for now.

    A machine with files that is away for a moment only, as far as is known, delays
    nobody yet.
    """
    if is_of_quota(bar):
        return broken(Cause.QUOTA, None)
    source = waiter.waiting.source or ""
    if bar.reason is not Reason.COPY_SOURCE_AWAY:
        return broken(bar.reason, source)
    entry = fleet.entries.get(source)
    is_expected = entry is not None and entry.machine.expected_back
    if is_expected or fleet.context.recovering:
        return None
    return broken(Reason.OFFLINE, source)


def never_copied(fleet: Fleet, waiter: Waiter) -> Explanation | None:
    """Return why no time brings *waiter* the files with which it is to begin."""
    bar = _no_files(fleet, waiter)
    return bar if bar is not None and is_hopeless(bar) else None


def _no_files(fleet: Fleet, waiter: Waiter) -> Explanation | None:
    """Return that the files of which *waiter* begins with a copy cannot be sent.

    What was placed all the same would hold a machine and wait in vain.
    """
    source = waiter.waiting.source
    if source is None:
        return None
    entry = fleet.entries.get(source)
    if entry is None or not entry.machine.online:
        return Explanation(reason=Reason.COPY_SOURCE_AWAY, subject=source)
    why = entry.machine.keeps_back
    if why is None:
        return None
    return Explanation(reason=why, machine=source, detail=FILES_THERE)
