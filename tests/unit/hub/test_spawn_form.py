"""The spawn form's cards: what they say, and what is preselected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from bs4 import BeautifulSoup

from fleet_contracts.reasons import Explanation, Reason
from fleet_hub.admission import Offer, Offers
from fleet_hub.pages.form import cards_of, holdings, render_form, state_of


def an_offer(profile: str = "cpu", class_name: str = "small", **more: Any) -> Offer:
    """Return an offer that can start now."""
    values: dict[str, Any] = {
        "profile": profile,
        "class_name": class_name,
        "title": profile.title(),
        "class_title": class_name.title(),
        "accelerator": "cpu",
        "cpu_milli": 2000,
        "memory_bytes": 4 * 1024**3,
        "startable": True,
        "choosable": True,
        "headline": "Starts now.",
    }
    return Offer.model_validate(values | more)


def not_startable(reason: Reason, *, choosable: bool = True, **more: Any) -> Offer:
    """Return an offer that *reason* keeps from starting."""
    return an_offer(
        startable=False,
        choosable=choosable,
        explanation=Explanation(reason=reason),
        headline="Because.",
        **more,
    )


def offers(*each: Offer) -> Offers:
    """Return an answer of the controller."""
    return Offers(as_of=datetime(2026, 11, 1, tzinfo=UTC), offers=each)


def form(*each: Offer, **more: Any) -> BeautifulSoup:
    """Return the rendered form, parsed."""
    return BeautifulSoup(render_form(offers(*each), **more), "html.parser")


@pytest.mark.parametrize(
    ("offer", "state"),
    [
        (an_offer(), "free"),
        (not_startable(Reason.CPU_BUSY), "busy"),
        (not_startable(Reason.OFFLINE), "away"),
        (not_startable(Reason.ISOLATION_TOO_WEAK, choosable=False), "forbidden"),
        (not_startable(Reason.MEMORY_TOO_SMALL, choosable=False), "never"),
        (an_offer(startable=False), "busy"),
        (an_offer(startable=False, choosable=False), "never"),
    ],
)
def test_the_four_kinds_of_no_look_different(offer: Offer, state: str) -> None:
    """Never, not now, busy and not allowed are told apart at a glance."""
    assert state_of(offer) == state


@pytest.mark.parametrize(
    ("offer", "text"),
    [
        (an_offer(), "2 cores, 4 GiB memory"),
        (an_offer(cpu_milli=1000), "1 core, 4 GiB memory"),
        (
            an_offer(cpu_milli=500, memory_bytes=512 * 1024**2),
            "0.5 cores, 512 MiB memory",
        ),
        (
            an_offer(accelerator="cuda", devices=2, limit_seconds=7200),
            "2 cores, 4 GiB memory, 2 NVIDIA GPUs, for at most 2 h 0 min",
        ),
        (an_offer(accelerator="mps"), "2 cores, 4 GiB memory, the Apple GPU"),
    ],
)
def test_a_card_says_what_it_holds(offer: Offer, text: str) -> None:
    """The amounts are those of the class, in people's units."""
    assert holdings(offer) == text


def test_waiting_is_offered_and_only_permission_disables() -> None:
    """Queueing is the point: a busy profile can be chosen, a forbidden one cannot."""
    page = form(
        not_startable(Reason.CPU_BUSY, profile="busy"),
        not_startable(Reason.ISOLATION_TOO_WEAK, choosable=False, profile="not-mine"),
    )
    radios = {each["value"]: each for each in page.select("input[name=profile]")}
    assert not radios["busy"].has_attr("disabled")
    assert radios["not-mine"].has_attr("disabled")
    assert "Because." in page.select_one("#fleet-state-not-mine").text


@pytest.mark.parametrize(
    ("wanted", "last", "chosen"),
    [
        (None, None, ("a", "one")),
        (None, {"profile": "b"}, ("b", "one")),
        (None, {"profile": "b", "class": "two"}, ("b", "two")),
        (("b", None), {"profile": "a"}, ("b", "one")),
        (("b", "two"), None, ("b", "two")),
        (("b", "gone"), None, ("b", "one")),
        (("gone", None), {"profile": "b"}, ("b", "one")),
        (("forbidden", None), None, ("a", "one")),
        (None, {"profile": ["odd"]}, ("a", "one")),
    ],
)
def test_the_link_wins_over_the_last_choice_and_that_over_the_first(
    wanted: tuple[str, str | None] | None,
    last: dict[str, Any] | None,
    chosen: tuple[str, str],
) -> None:
    """What cannot be chosen is never preselected."""
    given = offers(
        not_startable(Reason.ISOLATION_TOO_WEAK, choosable=False, profile="forbidden"),
        *(an_offer(profile, name) for profile in "ab" for name in ("one", "two")),
    )
    cards = cards_of(given, wanted=wanted, last=last)
    card = next(card for card in cards if card.selected)
    assert (card.slug, card.shown.name) == chosen
    assert [card.slug for card in cards] == ["forbidden", "a", "b"]


def test_a_profile_with_several_classes_offers_them_in_a_list() -> None:
    """Without a script the list alone says which class can start."""
    page = form(
        an_offer("a", "one"),
        not_startable(Reason.CPU_BUSY, profile="a", class_name="two"),
    )
    texts = [" ".join(each.text.split()) for each in page.select("select option")]
    assert page.select_one("select")["name"] == "class-a"
    assert texts[0].endswith("can start now")
    assert texts[1].endswith("waits in line")


def test_titles_cannot_inject_markup() -> None:
    """A catalog's words are text."""
    page = form(an_offer(title="<script>alert(1)</script>", headline="<b>x</b>"))
    assert page.select_one(".fleet-title").text == "<script>alert(1)</script>"


def test_a_controller_that_is_away_leaves_a_form_that_says_so() -> None:
    """Nobody meets an empty page."""
    page = BeautifulSoup(render_form(None), "html.parser")
    assert "controller does not answer" in page.text
    assert page.select("input") == []


def test_a_user_who_may_start_nothing_is_told_in_one_sentence() -> None:
    """Each card says why; the page says that it is all of them."""
    page = form(not_startable(Reason.ISOLATION_TOO_WEAK, choosable=False))
    assert "None of these profiles can be started by you" in page.text


def test_an_empty_catalog_is_said() -> None:
    """A fleet without profiles is the admin's to fill."""
    assert "no profile to choose from" in form().text
