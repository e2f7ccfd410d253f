"""What the Hub's pages are told: rows, events of the stream, addresses, refusals."""

from __future__ import annotations

import pytest
from told_timelines import a_timeline, an_event

from fleet_contracts.allocations import State
from fleet_contracts.reasons import FACTS, Explanation, Reason
from fleet_contracts.timeline import Progress, TimelineKind
from fleet_hub.progress import alive_event, percent, step_message, stream_event
from fleet_hub.refusals import SpawnRefused, refused, status_of
from fleet_hub.service_urls import internal_url, public_url


def test_the_stream_carries_the_entry_for_our_page_and_words_for_others() -> None:
    """Any reader of JupyterHub's stream sees how far it is."""
    step = Progress(step="install_packages", done=30, total=115, unit="packages")
    event = an_event(7, State.PREPARING, 3, kind=TimelineKind.PROGRESS, progress=step)
    sent = stream_event(event, a_timeline(event, now=4))
    assert sent["message"] == "Preparing: install packages, 30 of 115 packages"
    assert 30 < sent["progress"] < 80
    assert sent["fleet"]["event"]["seq"] == 7
    assert sent["fleet"]["timeline"]["headline"] == "A sentence."
    assert "events" not in sent["fleet"]["timeline"]
    assert not {"ready", "failed", "html_message"} & set(sent)


def test_a_bar_never_runs_backwards_through_a_start() -> None:
    """Each phase begins beyond the one before."""
    along = [State.REQUESTED, State.QUEUED, State.PLACED, State.PREPARING]
    along += [State.STARTING, State.READY]
    values = [percent(an_event(1, state, 0)) for state in along]
    assert values == sorted(value for value in values if value is not None)
    assert percent(an_event(1, State.STOPPED, 0)) is None


def test_each_kind_of_entry_has_words() -> None:
    """No code reaches the event log."""
    for kind in TimelineKind:
        event = an_event(1, State.READY, 0, kind=kind)
        assert "_" not in step_message(event)
        assert step_message(event)[0].isupper()


def test_a_sign_of_life_says_nothing_else() -> None:
    """It only shows that the stream lives, and how things stand."""
    assert alive_event(None) == {"fleet": {"timeline": None}}
    assert "message" not in alive_event(a_timeline(an_event(1, State.QUEUED, 0), now=1))


@pytest.mark.parametrize(
    ("controller", "hub", "url"),
    [
        ("http://127.0.0.1:8098", "/hub/", "http://127.0.0.1:8098/services/fleet/"),
        ("http://h:1/", "/base/hub/", "http://h:1/base/services/fleet/"),
        ("https://h/elsewhere", "/hub/", "https://h/elsewhere/"),
    ],
)
def test_an_origin_is_completed_with_the_service_s_path(
    controller: str, hub: str, url: str
) -> None:
    """The Hub's base URL is in front of its services too."""
    assert internal_url(controller, hub) == url
    assert public_url("/base/hub/") == "/base/services/fleet/"


def test_a_refusal_shows_its_sentence_to_people_and_its_code_to_programs() -> None:
    """JupyterHub reads these attributes in form, page, stream and REST."""
    refusal = SpawnRefused(
        "Not <b>now</b>.",
        reason=Reason.PLACE_KEPT,
        link='/x?"',
        link_text="Follow",
        retry_after_seconds=60,
    )
    assert refusal.jupyterhub_message == "Not <b>now</b>. (place_kept)"
    assert refusal.jupyterhub_html_message == (
        'Not &lt;b&gt;now&lt;/b&gt;. <a href="/x?&#34;">Follow</a>'
    )
    assert refusal.reason == "place_kept"
    assert refusal.headers == {"X-Fleet-Reason": "place_kept", "Retry-After": "60"}


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (Reason.PROFILE_UNKNOWN, 400),
        (Reason.ISOLATION_TOO_WEAK, 403),
        (Reason.FOREIGN_LINK, 403),
        (Reason.CPU_BUSY, 503),
        (Reason.PLACE_KEPT, 503),
        (Reason.START_FAILED, 500),
    ],
)
def test_each_kind_of_reason_has_its_status(reason: Reason, status: int) -> None:
    """Whose move it is can be read from the status."""
    assert status_of(reason) == status


def test_every_reason_has_a_status() -> None:
    """A new code cannot break a refusal."""
    for reason in FACTS:
        assert 400 <= status_of(reason) <= 503


def test_a_refusal_without_words_still_says_something() -> None:
    """An older controller may send a code alone."""
    refusal = refused(Explanation(reason=Reason.CLASS_UNKNOWN), "")
    assert refusal.sentence
    assert refusal.status_code == 400
