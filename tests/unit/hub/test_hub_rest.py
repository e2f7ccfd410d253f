"""What each answer of a real Hub means for a place that is held."""

from __future__ import annotations

import json

import pytest

from fleet_hub.adapters.hub_rest import REASON_HEADER, read_answer
from fleet_hub.controller.ports import StartAnswer


@pytest.mark.parametrize(
    ("code", "message", "headers", "answer"),
    [
        (201, "", {}, StartAnswer.STARTED),
        (202, "", {}, StartAnswer.UNDER_WAY),
        (400, "ada:lab is already running", {}, StartAnswer.UNDER_WAY),
        (400, "ada:lab is pending check", {}, StartAnswer.LATER),
        (400, "ada:lab is pending stop", {}, StartAnswer.LATER),
        (429, "Too many users", {"Retry-After": "30"}, StartAnswer.LATER),
        (404, "No such user", {}, StartAnswer.GONE),
        (
            403,
            (
                "Action is not authorized with current scopes; requires any of "
                "[start:servers]"
            ),
            {},
            StartAnswer.FORBIDDEN,
        ),
        (403, "Missing or invalid credentials.", {}, StartAnswer.FORBIDDEN),
        (
            403,
            "This machine runs native notebooks for its owner only.",
            {REASON_HEADER: "isolation_too_weak"},
            StartAnswer.REFUSED,
        ),
        (
            503,
            "1 ahead of you. (place_kept)",
            {REASON_HEADER: "place_kept", "Retry-After": "60"},
            StartAnswer.REFUSED,
        ),
        (400, "Invalid user options", {}, StartAnswer.REFUSED),
        (500, "Internal Server Error", {}, StartAnswer.REFUSED),
        (502, "", {}, StartAnswer.UNREACHABLE),
    ],
)
def test_every_answer_leads_somewhere(
    code: int, message: str, headers: dict[str, str], answer: StartAnswer
) -> None:
    """To the Spawner's own ask, to another try, or to giving the place back."""
    body = json.dumps({"status": code, "message": message}).encode()
    assert read_answer(code, body, headers).answer is answer


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("30", 30.0), ("99999", 300.0), ("soon", None), ("-1", None), ("", None)],
)
def test_the_hubs_delay_is_taken_where_it_is_one(
    header: str, seconds: float | None
) -> None:
    """A nonsense delay is none, and nobody is kept waiting for a day."""
    result = read_answer(429, b"", {"Retry-After": header})
    assert result.retry_after_seconds == seconds


def test_an_answer_that_is_no_json_is_an_answer_too() -> None:
    """A proxy in between may say anything."""
    assert read_answer(500, b"<html>", {}).answer is StartAnswer.REFUSED
    assert read_answer(400, b"[1]", {}).answer is StartAnswer.REFUSED
