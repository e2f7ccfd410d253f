"""Bringing what a user chose into one shape, and judging that shape."""

from __future__ import annotations

import logging

import pseudo_language
import pytest
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

from fleet_contracts.language import speaking
from fleet_contracts.reasons import Reason
from fleet_hub import options


def a_request(**headers: str) -> HTTPServerRequest:
    """Return a request to the Hub with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HTTPServerRequest(
        start_line=RequestStartLine("GET", "/hub/spawn", "HTTP/1.1"),
        headers=HTTPHeaders({"Host": "hub.example", **named}),
    )


def test_a_form_names_the_class_of_the_chosen_profile_alone() -> None:
    """A browser without a script sends the class fields of all profiles."""
    fields = {
        "profile": ["gpu"],
        "class-cpu": ["small"],
        "class-gpu": ["large"],
        "_xsrf": ["token"],
    }
    assert options.from_form(fields) == {"profile": "gpu", "class": "large"}


def test_a_form_passes_on_what_it_does_not_know() -> None:
    """Unknown options are refused where all ways in meet, not dropped on the way."""
    fields = {"profile": ["cpu"], "image": ["evil"]}
    assert options.from_form(fields) == {"profile": "cpu", "image": "evil"}


def test_an_empty_field_is_no_choice() -> None:
    """A form that was sent without a choice has none."""
    assert options.from_form({"profile": [""]}) == {}


def test_a_repeated_field_is_refused_later() -> None:
    """Which of two profiles was meant cannot be told."""
    chosen = options.from_form({"profile": ["a", "b"]})
    fault = options.structural_fault(chosen)
    assert fault is not None
    assert (fault.reason, fault.subject) == (Reason.INVALID_REQUEST, "profile")


def test_a_link_that_only_preselects_starts_nothing() -> None:
    """JupyterHub would take any query key for an option, and start."""
    with pytest.raises(options.PreselectionOnly):
        options.from_query({"choice": ["gpu/large"]})


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"choice": [b"gpu"]}, ("gpu", None)),
        ({"choice": [b"gpu/large"]}, ("gpu", "large")),
        ({"choice": [b"\xff"]}, ("\N{REPLACEMENT CHARACTER}", None)),
        ({}, None),
    ],
)
def test_a_link_names_a_profile_and_perhaps_a_class(
    query: dict[str, list[bytes]], wanted: tuple[str, str | None] | None
) -> None:
    """Whatever stands in the link, it only selects."""
    assert options.preselected(query) == wanted


@pytest.mark.parametrize(
    ("headers", "here"),
    [
        ({"Sec_Fetch_Site": "same-origin"}, True),
        ({"Sec_Fetch_Site": "none"}, True),
        ({"Sec_Fetch_Site": "same-site"}, False),
        ({"Sec_Fetch_Site": "cross-site"}, False),
        ({"Sec_Fetch_Site": "cross-site", "Referer": "http://hub.example/"}, False),
        ({"Referer": "http://hub.example/hub/home"}, True),
        ({"Referer": "http://evil.example/hub.example"}, False),
        ({"Referer": "http://hub.example.evil/"}, False),
        ({}, False),
    ],
)
def test_a_starting_link_must_come_from_our_own_pages(
    headers: dict[str, str], *, here: bool
) -> None:
    """What does not say where it comes from may come from anywhere."""
    assert options.comes_from_here(a_request(**headers)) is here


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (["profile"], Reason.INVALID_REQUEST),
        ({}, Reason.PROFILE_REQUIRED),
        ({"class": "small"}, Reason.PROFILE_REQUIRED),
        ({"profile": None}, Reason.PROFILE_REQUIRED),
        ({"profile": ""}, Reason.PROFILE_REQUIRED),
        ({"profile": 0}, Reason.INVALID_REQUEST),
        ({"profile": False}, Reason.INVALID_REQUEST),
        ({"profile": []}, Reason.INVALID_REQUEST),
        ({"profile": {}}, Reason.INVALID_REQUEST),
        ({"profile": float("nan")}, Reason.INVALID_REQUEST),
        ({"profile": "\ud800"}, Reason.INVALID_REQUEST),
        ({"profile": "cpu", "class": "small\udfff"}, Reason.INVALID_REQUEST),
        ({"profile": "cpu", "\ud800": 1}, Reason.OPTION_UNKNOWN),
        ({"profile": "cpu", "class": False}, Reason.INVALID_REQUEST),
        ({"profile": 3}, Reason.INVALID_REQUEST),
        ({"profile": "cpu", "class": ["small"]}, Reason.INVALID_REQUEST),
        ({"profile": "cpu", "gpus": 8}, Reason.OPTION_UNKNOWN),
        ({"profile": "cpu", "files": "move"}, Reason.INVALID_REQUEST),
    ],
)
def test_each_structural_fault_has_a_code_and_a_sentence(
    chosen: object, reason: Reason
) -> None:
    """Nothing reaches the catalog that is not one profile and at most one class."""
    fault = options.structural_fault(chosen)
    assert fault is not None
    assert fault.reason is reason
    assert options.fault_sentence(fault).endswith(".")
    # Whoever is told it can be sent it.
    assert options.fault_sentence(fault).encode()
    with speaking(pseudo_language.language()):
        told = options.fault_sentence(fault)
    assert pseudo_language.literals([told]) == []


def test_a_refusal_names_what_can_be_written() -> None:
    """Whoever mistypes an option or a way with files reads which ones there are."""
    fault = options.structural_fault({"profile": "cpu", "file": "copy"})
    assert fault is not None
    assert "profile, class and files alone" in options.fault_sentence(fault)
    fault = options.structural_fault({"profile": "cpu", "files": "move"})
    assert fault is not None
    assert "one of: copy, fresh" in options.fault_sentence(fault)
    for way in (*options.WAYS_WITH_FILES, None):
        chosen = {"profile": "cpu", "files": way}
        assert options.structural_fault(chosen) is None


def test_a_profile_with_a_class_has_no_structural_fault() -> None:
    """Whether they exist is for the catalog to say."""
    assert options.structural_fault({"profile": "cpu", "class": "small"}) is None
    assert options.structural_fault({"profile": "cpu", "class": None}) is None


def test_a_long_unknown_option_is_named_in_part() -> None:
    """A refusal does not carry a page of somebody's input."""
    fault = options.structural_fault({"x" * 5000: 1})
    assert fault is not None
    assert len(fault.subject or "") == 64


def test_preselecting_leaves_no_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """JupyterHub logs the exception that keeps it from starting; it is no error."""
    logger = logging.getLogger("test_options")
    options.quieten(logger)
    options.quieten(logger)
    try:
        for kind in (options.PreselectionOnly, ValueError):
            try:
                _raise(kind)
            except kind:
                logger.exception("failed")
    finally:
        logger.filters.clear()
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [
        ValueError
    ]


def _raise(kind: type[Exception]) -> None:
    raise kind
