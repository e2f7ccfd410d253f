"""Words in other languages, and words about other people's servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pseudo_language
import pytest
from babel.messages.pofile import read_po

from fleet_contracts import languages
from fleet_contracts.allocations import State
from fleet_contracts.language import (
    ENGLISH,
    Language,
    language,
    say,
    say_many,
    speak,
    speak_of_another,
    speaking,
    speaks_as_written,
    translated,
)
from fleet_contracts.phrases import PHRASES, REMEDIES
from fleet_contracts.reasons import Explanation, Reason
from fleet_contracts.sentences import headline, remedy, sentence
from fleet_contracts.timeline_phrases import EVENTS, HEADLINES, STATES, TEXTS
from fleet_contracts.voices import OF_ANOTHER


POLISH = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
SPOKEN_TO = re.compile(r"\b(you|your|yours|my)\b", re.IGNORECASE)


def a_language(tag: str = "pl", formula: str = POLISH, **texts: Any) -> Language:
    """Return a language with a few words."""
    return Language.read(tag, {"": {"plural_forms": formula}, **texts})


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Leave no language behind."""
    yield
    speak(ENGLISH)
    speak_of_another(is_another=False)


def test_english_is_what_stands_in_the_code() -> None:
    """With its values, and a whole number however it came."""
    assert say("%1 of %2 in {place}", 3, 4, place="Rome") == "3 of 4 in Rome"
    assert say("up to %3", 1) == "up to %3"
    assert say("on {machine}") == "on {machine}"
    assert say("[on {machine}]", machine=None) == "[on {machine}]"
    assert say_many("%1 core", "%1 cores", 1.0) == "1 core"
    assert say_many("%1 core", "%1 cores", 1.5) == "1.5 cores"
    assert say_many("%1 day %2 h", "%1 days %2 h", 2, 7) == "2 days 7 h"


@pytest.mark.parametrize(
    ("count", "form"),
    [(1, "a"), (2, "b"), (5, "c"), (12, "c"), (22, "b"), (112, "c"), (1_022, "b")],
)
def test_each_number_has_the_form_of_its_language(count: int, form: str) -> None:
    """Three of them in Polish, chosen by the last two digits."""
    spoken = a_language(**{"%1 core": ["a", "b", "c"]})
    with speaking(spoken):
        assert say_many("%1 core", "%1 cores", count) == form
        assert say_many("%1 core", "%1 cores", 1.5) == "b"
        assert say_many("%1 day", "%1 days", count).startswith(str(count))


def test_a_language_ends_with_the_page_that_speaks_it() -> None:
    """And an empty translation is none."""
    spoken = a_language(Stopped=["Zatrzymano"], Ready=[""])
    with speaking(spoken, of_another=True):
        assert language() is spoken
        assert translated("Stopped") == "Zatrzymano"
        assert translated("Ready") == "Ready"
        with speaking():
            assert translated("You are next.") == "It is next."
            assert not speaks_as_written()
    assert speaks_as_written()
    speak(spoken)
    assert translated("Stopped") == "Zatrzymano"


@pytest.mark.parametrize("document", [{}, {"": "no head"}, {"": {"plural_forms": "n"}}])
def test_a_file_that_is_no_language_is_refused(document: dict[str, Any]) -> None:
    """Rather than a page without words."""
    with pytest.raises(ValueError, match=r"pl|plural"):
        Language.read("pl", document)


def test_a_page_is_told_the_plurals_as_a_table() -> None:
    """Its script may evaluate no formula."""
    spoken = a_language("ar_EG", Stopped=["x"])
    told = spoken.document()
    assert told["tag"] == "ar-EG"
    assert told["plurals"][:3] == (2, 0, 1)
    assert told["texts"] == {"Stopped": ("x",)}
    assert spoken.direction == "rtl"
    assert ENGLISH.direction == "ltr"


# ---------------------------------------------------------------------- which one


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Language]]:
    """German beside the code; Brazilian and a broken one in packs."""

    def words(folder: Path, tag: str, text: str) -> None:
        path = folder / "locale" / tag / "LC_MESSAGES" / "fleet_lab.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)

    good = json.dumps(
        {"": {"plural_forms": pseudo_language.FORMULA}, "Ready": ["Fertig"]}
    )
    words(tmp_path / "own", "de", good)
    words(tmp_path / "pack", "pt_BR", good)
    words(tmp_path / "pack", "fr", "{")
    packs = [
        SimpleNamespace(
            load=lambda: SimpleNamespace(
                __file__=str(tmp_path / "pack" / "__init__.py")
            )
        ),
        SimpleNamespace(load=lambda: SimpleNamespace(__file__=None)),
        SimpleNamespace(load=lambda: 1 / 0),
    ]
    monkeypatch.setattr(languages, "LOCALE", tmp_path / "own" / "locale")
    monkeypatch.setattr(languages, "entry_points", lambda group: packs)
    languages.languages.cache_clear()
    yield languages.languages()
    languages.languages.cache_clear()


def test_what_cannot_be_read_is_no_language(installed: dict[str, Language]) -> None:
    """A page in English is better than none."""
    assert sorted(installed) == ["de", "pt-br"]


@pytest.mark.parametrize(
    ("wishes", "tag"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9", "de"),
        ("pt,en;q=0.5", "pt-BR"),
        ("en-GB,de;q=0.9", "en"),
        ("sv,de;q=0.3,pt;q=0.8", "pt-BR"),
        ("sv, de;q=0, *;q=0.1", "en"),
        ("de;q=much, pt", "pt-BR"),
        ("de;level=1", "de"),
        ("," * 10_000, "en"),
    ],
)
def test_the_reader_gets_the_best_of_what_is_there(
    installed: dict[str, Language], wishes: str, tag: str
) -> None:
    """As the browser's own list orders them; English where none of them is there."""
    assert languages.language_of(wishes).tag == tag


def test_a_language_can_be_named_as_a_system_names_it(
    installed: dict[str, Language],
) -> None:
    """Whoever speaks none of them is told in English."""
    assert languages.language_named("de_DE.UTF-8").tag == "de"
    assert languages.language_named("C.UTF-8") is ENGLISH
    assert languages.language_named("") is ENGLISH


# ---------------------------------------------------------------- every text


def test_every_sentence_can_be_translated() -> None:
    """No word of a reason, a remedy or a headline stands outside of the catalogue."""
    spoken = pseudo_language.language()
    with speaking(spoken):
        told = [sentence(Explanation(reason=reason)) for reason in Reason]
        told += [remedy(reason) for reason in Reason]
        told += [headline(state) for state in State]
    assert pseudo_language.literals(told) == []


def test_what_speaks_to_a_server_s_owner_has_another_form_for_everybody_else() -> None:
    """An admin is not told that it is their turn."""
    tables = (PHRASES, REMEDIES, EVENTS, HEADLINES, STATES, TEXTS)
    spoken = {text for table in tables for text in table.values()}
    assert {text for text in spoken if SPOKEN_TO.search(text)} <= OF_ANOTHER.keys()
    assert not [text for text in OF_ANOTHER.values() if SPOKEN_TO.search(text)]


ITS_READER = {
    (
        "A second agent tried to speak for it and was refused, once, last at %2. If it is "
        "none of yours, rotate the token."
    ),
    "It stays as it is while you work in it.",
    "There is no such machine, or it is not yours",
    "There is no such workload, or it is not yours",
    (
        "The machine\u2019s link ends, and it comes back once it was enrolled with the new code "
        "that you are shown. What runs there runs on."
    ),
    (
        "You get a command to paste on the machine. It is valid once, for a quarter of an "
        "hour, and the machine serves its owner alone until an admin widens that."
    ),
    (
        "You opened this page without https, and machines of other networks are enrolled "
        "over https alone. Ask an admin to put TLS in front of the Hub."
    ),
    (
        "Another website asked to start a server in your name. Nothing was started; choose "
        "below if you want one."
    ),
    "There is no such profile for you",
    "This code does not let you in: it is mistyped, used, too old or another user\u2019s.",
    "You are offline.",
    "You may not use this service",
    "You own no machine of this fleet.",
    "Your machines of the fleet",
    "Your servers on the fleet",
    "Your use of the fleet",
    (
        "You may see all of the fleet, and act on what is yours alone. Ask an admin of the "
        "fleet to do this"
    ),
    (
        "If you were given that right just now, log out of JupyterHub and in again: it "
        "comes with the next log-in."
    ),
}
"""Texts that mean whoever reads them, and not the owner of a server."""
FRONT_END_ALONE = ("server_ext/src/incidents.ts", "server_ext/src/standing.ts")
"""What JupyterLab says: its server is its reader's own."""


def test_every_text_of_a_page_is_meant_for_its_reader_or_has_another_form() -> None:
    """The whole catalogue is looked at, so that a new page cannot forget it."""
    with (languages.LOCALE / "fleet_lab.pot").open("rb") as file:
        texts = {
            message.id if isinstance(message.id, str) else message.id[0]
            for message in read_po(file)
            if not {where for where, _ in message.locations} <= set(FRONT_END_ALONE)
        }
    forgotten = {text for text in texts if SPOKEN_TO.search(text)}
    assert forgotten - OF_ANOTHER.keys() - ITS_READER == set()
    assert OF_ANOTHER.keys() <= texts
