"""The spawn form's cards: what they say, and what is preselected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from bs4 import BeautifulSoup

from fleet_contracts.changes import Change, ChangeKind
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits
from fleet_hub.admission import Offer, Offers, WayOut
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
            an_offer(accelerator="cuda", devices=2),
            "2 cores, 4 GiB memory, 2 NVIDIA GPUs",
        ),
        (an_offer(accelerator="mps"), "2 cores, 4 GiB memory, the Apple GPU"),
    ],
)
def test_a_card_says_what_it_holds(offer: Offer, text: str) -> None:
    """The amounts are those of the class, in people's units."""
    assert holdings(offer) == text


LIMITS = TimeLimits(
    limit=TimeLimit(seconds=7200, set_by=SetBy.CLASS),
    idle_limit=TimeLimit(seconds=1800, set_by=SetBy.PROFILE),
)


def test_a_card_says_when_its_server_ends_and_what_set_that() -> None:
    """With or without a script, and to a screen reader with the state of the card."""
    never = not_startable(
        Reason.CPU_TOO_SMALL, choosable=False, profile="c", time_limits=LIMITS
    )
    page = form(an_offer("a", time_limits=LIMITS), an_offer("b"), never)
    assert page.select_one("#fleet-ends-a").text == (
        "Ends after 2 h (set by the class), or after 30 min in which nothing is "
        "computed (set by the profile)"
    )
    assert page.select_one("#fleet-ends-b").text == ""
    assert page.select_one("#fleet-ends-c").text == "", "it never runs"
    described = page.select_one("#fleet-profile-a")["aria-describedby"].split()
    assert described == ["fleet-ends-a", "fleet-state-a"]


def test_each_class_of_a_list_brings_its_own_end() -> None:
    """The card says the one of the class that is chosen."""
    page = form(an_offer("a", "one"), an_offer("a", "two", time_limits=LIMITS))
    first, second = page.select("select option")
    assert (first["data-fleet-ends"], page.select_one(".fleet-ends").text) == ("", "")
    assert second["data-fleet-ends"].startswith("Ends after 2 h (set by the class)")


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


def test_a_card_says_the_least_that_would_have_to_change() -> None:
    """After the reason, in the catalog's own units, with how many machines."""
    change = Change(
        kind=ChangeKind.DEVICE_MEMORY,
        requested="40G",
        instead="20G",
        machines=4,
        free_now=1,
    )
    (card,) = cards_of(offers(not_startable(Reason.GPU_BUSY, change=change)))
    assert card.shown.sentence == (
        "Because. With 20 GiB of device memory instead of 40 GiB: 4 machines, "
        "1 free now."
    )


def test_each_card_leads_to_every_machines_answer() -> None:
    """In a new tab, so that the choice is not lost; named for who cannot see it."""
    page = form(an_offer(), why_url="/services/fleet/why")
    (link,) = page.select(".fleet-state a")
    assert link["href"] == "/services/fleet/why?profile=cpu"
    assert link["rel"] == ["noopener"]
    assert "Cpu" in link["aria-label"]
    named = form(an_offer(), why_url="/why", server="a b&c")
    (link,) = named.select(".fleet-state a")
    assert link["href"] == "/why?profile=cpu&server=a%20b%26c"
    assert not form(an_offer()).select(".fleet-state a")


def test_how_many_wait_already_is_told() -> None:
    """A number says more than "busy"."""
    page = form(not_startable(Reason.CPU_BUSY, waiting=3))
    assert "3 waiting" in page.select_one(".fleet-state").text


def test_the_holder_s_end_is_told_beside_the_state() -> None:
    """Who waits can decide whether to."""
    page = form(
        an_offer(
            startable=False,
            explanation=Explanation(reason=Reason.METAL_BUSY, machine="mac-07"),
            headline="On mac-07, the Mac's GPU is taken; held by somebody else until "
            "14:12 UTC at the latest.",
        )
    )
    assert "until 14:12 UTC at the latest" in page.select_one(".fleet-state").text


@pytest.mark.parametrize(("count", "has_search"), [(3, False), (200, True)])
def test_many_profiles_can_be_searched(count: int, has_search: bool) -> None:
    """Few need no search; it is hidden until a script is there to do it."""
    page = form(*(an_offer(profile=f"p{number}") for number in range(count)))
    search = page.select_one("#fleet-search")
    assert (search is not None) is has_search
    if search is not None:
        assert search.has_attr("hidden")
    assert len(page.select("[data-fleet-card]")) == count


def test_a_hostile_title_stays_text() -> None:
    """The catalog's words come from people, too."""
    page = form(an_offer(title="<script>alert(1)</script>", description='"><b>x'))
    assert page.select_one(".fleet-title").text == "<script>alert(1)</script>"
    assert page.select_one(".fleet-description b") is None


def test_a_choice_that_cannot_run_beside_the_files_offers_its_ways_out() -> None:
    """The old class, or an empty folder that has to be asked for: never silently."""
    gpu = not_startable(
        Reason.DATA_NOT_LOCAL,
        choosable=False,
        class_name="gpu",
        ways_out=(
            WayOut(kind="keep_class", class_name="small", machine="cpu-box"),
            WayOut(kind="fresh_folder", class_name="gpu", machine="gpu-box"),
        ),
        no_copy=Explanation(reason=Reason.AGENT_TOO_OLD, machine="cpu-box"),
    )
    page = form(an_offer(), gpu)
    option = page.select_one("option[value=gpu]")
    assert not option.has_attr("disabled")
    assert option["data-fleet-word"] == "Not beside your files"
    assert option["data-fleet-sentence"] == (
        "Because. Keep Small on cpu-box, beside your files, or begin with an empty "
        "folder on gpu-box (choose it below); your files stay. Your files cannot be "
        "copied: on cpu-box, its agent is too old for this controller."
    )
    box = page.select_one("input[name=files][value=fresh]")
    assert not box.has_attr("checked")
    assert page.select_one("input[name=files][value='']").has_attr("checked")
    assert page.select_one("input[name=files][value=copy]") is None
    assert form(an_offer()).select_one("input[name=files]") is None


def test_files_that_can_be_copied_come_with_that_wish_too() -> None:
    """One of three, without any script; what nobody chose does nothing."""
    gpu = not_startable(
        Reason.DATA_NOT_LOCAL,
        choosable=False,
        class_name="gpu",
        ways_out=(
            WayOut(kind="copy_files", class_name="gpu", machine="gpu-box"),
            WayOut(kind="fresh_folder", class_name="gpu"),
        ),
    )
    page = form(an_offer(), gpu)
    told = page.select_one("option[value=gpu]")["data-fleet-sentence"]
    assert told == (
        "Because. Begin with a copy of your files on gpu-box (choose it below), or "
        "begin with an empty folder (choose it below); your files stay."
    )
    values = [radio["value"] for radio in page.select("input[name=files]")]
    assert values == ["", "copy", "fresh"]
    assert all(
        page.select(f"label[for={r['id']}]") for r in page.select("[name=files]")
    )
