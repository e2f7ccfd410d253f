"""Looks at everything that a computer needs to take work; changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from shlex import quote
from typing import Final

from tornado.httpclient import AsyncHTTPClient, HTTPClientError

from fleet_agent.errors import AgentError
from fleet_agent.examination.findings import Finding
from fleet_agent.state_folder import StateFolder, read_token
from fleet_contracts.amounts import describe_bytes
from fleet_contracts.capabilities import DeviceKind, OwnerTerm, WorkerCapabilities
from fleet_contracts.phrases import REMEDIES
from fleet_contracts.reasons import Reason
from fleet_contracts.term_sentences import term_line


_ANSWER_SECONDS: Final = 10.0
_MOST_SKEW_SECONDS: Final = 30.0
_NEEDED_BYTES: Final = 1536 * 1024 * 1024
"""What the build of an environment asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The fleet service, as the settings name it."""

    url: str | None
    fault: str = ""
    """Why it is not known."""
    ca_file: str | None = None


def folder_findings(
    folder: StateFolder, token: Path, others: Sequence[Path] = ()
) -> Iterator[Finding]:
    """Yield what is so of the agent's own folder and token.

    Agents that work in *others* are of as many computers as far as anybody can tell.
    """
    if not folder.path.is_dir() and others:
        commands = (f"fleet-agent doctor --state-dir {quote(str(it))}" for it in others)
        yield Finding(
            subject="state folder",
            ok=False,
            text=f"{folder.path} is not there, and {len(others)} agents work elsewhere",
            remedy=f"Say which one is meant: {', or '.join(commands)}",
        )
        return
    if not folder.path.is_dir():
        yield Finding(
            subject="state folder",
            ok=False,
            text=f"{folder.path} is not there",
            remedy="Run fleet-agent enrol, or name the folder with --state-dir.",
        )
        return
    try:
        folder.check()
    except AgentError as error:
        yield Finding(subject="state folder", ok=False, text=str(error))
        return
    yield Finding(subject="state folder", ok=True, text=str(folder.path))
    yield _token(token)
    yield _agent(folder)


def _token(path: Path) -> Finding:
    try:
        read_token(path)
    except AgentError as error:
        return Finding(
            subject="enrolment",
            ok=False,
            text=str(error),
            remedy="Run fleet-agent enrol with a code from the fleet page.",
        )
    return Finding(subject="enrolment", ok=True, text="this computer has a token")


def _agent(folder: StateFolder) -> Finding:
    try:
        runs = folder.is_locked()
    except OSError as error:
        return Finding(subject="agent", ok=None, text=f"nobody can tell: {error}")
    if runs:
        return Finding(subject="agent", ok=True, text="it runs")
    return Finding(
        subject="agent",
        ok=False,
        text=f"it does not run{_why_ended(folder)}",
        remedy=f"Have it started always with fleet-agent install{folder.as_option}, "
        f"or now with fleet-agent run{folder.as_option}.",
    )


def _why_ended(folder: StateFolder) -> str:
    """Return what the last agent said as it could not go on."""
    try:
        why = folder.ended.read_text(encoding="utf-8", errors="replace").strip()
        at = datetime.fromtimestamp(folder.ended.stat().st_mtime, UTC)
    except OSError:
        return ""
    return f"; since {at:%Y-%m-%d %H:%M:%S} UTC, when it could not go on: {why}"


async def controller_findings(controller: Controller) -> list[Finding]:
    """Return whether the controller answers, and whether the clocks agree."""
    if controller.url is None:
        return [
            Finding(
                subject="controller",
                ok=False,
                text=controller.fault,
                remedy="Run fleet-agent enrol, or name it with --controller.",
            )
        ]
    client = AsyncHTTPClient(force_instance=True)
    try:
        answer = await client.fetch(
            f"{controller.url}health",
            raise_error=False,
            request_timeout=_ANSWER_SECONDS,
            connect_timeout=_ANSWER_SECONDS,
            ca_certs=controller.ca_file,
        )
    except (OSError, HTTPClientError) as error:
        return [_unreached(controller.url, str(error))]
    finally:
        client.close()
    if answer.code != HTTPStatus.OK:
        return [_unreached(controller.url, f"it answers with status {answer.code}")]
    reached = Finding(subject="controller", ok=True, text=f"{controller.url} answers")
    return [reached, *_clock(answer.headers.get("Date"), datetime.now(UTC))]


def _unreached(url: str, why: str) -> Finding:
    return Finding(
        subject="controller",
        ok=False,
        text=f"{url} was not reached: {why}",
        remedy="Open that address in a browser on this computer: the network, a proxy "
        "or a certificate stands between them.",
    )


def _clock(told: str | None, now: datetime) -> Iterator[Finding]:
    try:
        there = parsedate_to_datetime(told) if told else None
    except ValueError:
        there = None
    if there is None:
        return
    apart = (now - there).total_seconds()
    agrees = abs(apart) <= _MOST_SKEW_SECONDS
    yield Finding(
        subject="clock",
        ok=True if agrees else None,
        text=(
            "it agrees with the controller's"
            if agrees
            else f"it is {abs(apart):.0f} seconds "
            f"{'ahead of' if apart > 0 else 'behind'} the controller's"
        ),
        remedy="Times on the fleet's pages will look odd: set the clock, or have it set "
        "by NTP.",
    )


def term_findings(terms: tuple[OwnerTerm, ...]) -> Iterator[Finding]:
    """Yield each of the owner's terms; one that is not met closes the computer."""
    for term in terms:
        known = term.reason in list(Reason)
        yield Finding(
            subject="owner's terms",
            ok=term.met is True,
            text=term_line(term),
            remedy=_remedy(term) if known else "",
        )


def _remedy(term: OwnerTerm) -> str:
    if term.name == "drain":
        return "Take new work again with fleet-agent resume."
    return REMEDIES[Reason(term.reason)]


def picture_findings(picture: WorkerCapabilities) -> Iterator[Finding]:
    """Yield what the probes found that matters for taking work."""
    usable = any(driver.usable for driver in picture.drivers)
    for driver in picture.drivers:
        told = "" if driver.reason == "ok" else f" ({driver.reason})"
        yield Finding(
            subject=f"driver {driver.name.value}",
            # One that works is enough.
            ok=True if driver.usable else None if usable else False,
            text=f"{'usable' if driver.usable else 'not usable'}{told}",
            remedy="Look at what fleet-agent probe says of sandboxes and containers.",
        )
    for device in picture.accelerators:
        if device.accelerator is not DeviceKind.OTHER:
            yield Finding(
                subject="accelerator",
                ok=None if device.healthy is False else True,
                text=f"{device.name or 'a device without a name'}"
                f"{' is not healthy' if device.healthy is False else ''}",
                remedy="Classes that need it wait; work on the processor does not.",
            )
    for note in picture.notes:
        yield Finding(subject="probe", ok=None, text=note.text)


def disk_finding(folder: Path) -> Finding:
    """Return whether an environment can be built here."""
    place = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    free = shutil.disk_usage(place).free
    enough = free >= _NEEDED_BYTES
    return Finding(
        subject="disk",
        ok=enough,
        text=f"{describe_bytes(free)} are free; an environment needs "
        f"{describe_bytes(_NEEDED_BYTES)}",
        remedy="Make room, or put the state folder elsewhere (--state-dir).",
    )
