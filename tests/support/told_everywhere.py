"""What somebody is told of a wait or a refusal, in every place where they may look."""

from __future__ import annotations

from fleet_controller import Fleet

from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.timeline import Timeline, TimelineEvent
from fleet_hub.controller.exporting import state_of, view_of
from fleet_hub.controller.model import WAITING
from fleet_hub.controller.records import Workload
from fleet_hub.controller.timelines import status_of, timeline_of
from fleet_hub.explaining.answers import answer, line
from fleet_hub.explaining.document import Answer, LineDocument, Question
from fleet_hub.explaining.prose import describe, describe_line
from fleet_hub.explaining.state import dump, load
from fleet_hub.explaining.view import view_of as view_of_state
from fleet_hub.service.gauges import Gauges
from fleet_hub.terminal import Style


def answer_to(fleet: Fleet, record: Workload) -> Answer:
    """Return what REST and the page answer, down to each machine."""
    return answer(view_of(fleet.core), Question(workload=record.id))


def what_if(
    fleet: Fleet,
    user: str,
    profile: str = "lab",
    class_name: str | None = None,
    *groups: str,
) -> Answer:
    """Return what is answered to a mere question."""
    asked = {"user": user, "profile": profile, "class": class_name, "groups": groups}
    return answer(view_of(fleet.core), Question.model_validate(asked))


def in_a_terminal(told: Answer) -> str:
    """Return *told* as ``jupyter-fleet explain`` writes it, on one line."""
    return " ".join(describe(told, Style()).split())


def the_line(fleet: Fleet) -> LineDocument:
    """Return everybody who waits, as REST tells it."""
    return line(view_of(fleet.core))


def the_line_in_a_terminal(fleet: Fleet) -> str:
    """Return the line as ``jupyter-fleet queue`` writes it, on one line."""
    return " ".join(describe_line(the_line(fleet), Style()).split())


def timeline_to(fleet: Fleet, record: Workload) -> Timeline:
    """Return the timeline as pages, panel and notebook read it."""
    return timeline_of(fleet.core, fleet.get(record))


def rows(fleet: Fleet, record: Workload, reason: Reason) -> list[TimelineEvent]:
    """Return the rows of the timeline that tell of *reason*."""
    events = fleet.store.events(record.id)
    return [
        event
        for event in events
        if event.explanation is not None and event.explanation.reason is reason
    ]


def waiting_by_reason(fleet: Fleet) -> dict[str, float]:
    """Return how many wait for what, as the metrics tell it."""
    found: dict[str, float] = {}
    for metric in Gauges(fleet.core).collect():
        if metric.name.endswith("waiting_reasons"):
            for sample in metric.samples:
                reason = sample.labels["reason"]
                found[reason] = found.get(reason, 0) + sample.value
    return found


def told(fleet: Fleet, record: Workload) -> Explanation:
    """Return why, after seeing that every reader is told the same.

    Status, timeline, REST, the exported state that is asked offline, and for who waits
    the line and the metrics.
    """
    found = fleet.get(record)
    live = answer_to(fleet, record)
    assert live.why is not None
    why = live.why.explanation
    offline = answer(view_of_state(load(_json(fleet))), Question(workload=record.id))
    status = status_of(fleet.core, found, view_token="")
    said = {
        "rest": why,
        "offline": offline.why and offline.why.explanation,
        "status": status.explanation,
        "timeline": timeline_to(fleet, record).explanation,
    }
    if found.state in WAITING:
        [mine] = [one for one in the_line(fleet).waiting if one.workload == record.id]
        said["line"] = mine.why.explanation
        assert waiting_by_reason(fleet)[why.reason.value] >= 1
    assert {key: one and one.reason for key, one in said.items()} == dict.fromkeys(
        said, why.reason
    )
    assert said["line" if "line" in said else "status"] == why
    return why


def _json(fleet: Fleet) -> str:
    import json  # noqa: PLC0415 - for this alone

    return json.dumps(dump(state_of(fleet.core)))
