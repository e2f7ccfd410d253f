"""What would have to be asked for instead, so that a request fits.

A change is one requirement in the catalog's own units, with what it would bring; its
sentence is made here, as those of reasons are in ``sentences.py``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AwareDatetime, Field

from fleet_contracts.base import Contract
from fleet_contracts.language import mark, said, say, say_many


Count = Annotated[int, Field(ge=0)]


class ChangeKind(StrEnum):
    """Which requirement would be another one."""

    DEVICE_MEMORY = "device_memory"
    DEVICES = "devices"
    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    COMPUTE_CAPABILITY = "compute_capability"
    DEVICE_MODEL = "device_model"
    CLASS = "class"


class Change(Contract):
    """The smallest change of one requirement that makes a request fit."""

    kind: ChangeKind
    requested: str
    instead: str
    """In the units of the catalog: ``20G``, ``2``, ``8.0``, a class's name."""
    machines: Count
    """How many machines would serve then."""
    free_now: Count
    """How many of them at once."""
    starts_by: AwareDatetime | None = None
    """When it would start at the latest, where as asked no time is known."""


_PHRASES: Final = {
    ChangeKind.DEVICE_MEMORY: mark(
        "with {instead} of device memory instead of {requested}"
    ),
    ChangeKind.DEVICES: mark("with {instead} devices instead of {requested}"),
    ChangeKind.CPU: mark("with {instead} cores instead of {requested}"),
    ChangeKind.MEMORY: mark("with {instead} of memory instead of {requested}"),
    ChangeKind.DISK: mark("with {instead} of disk instead of {requested}"),
    ChangeKind.COMPUTE_CAPABILITY: mark(
        "with compute capability {instead} instead of {requested}"
    ),
    ChangeKind.DEVICE_MODEL: mark("with a {instead} instead of {requested}"),
    ChangeKind.CLASS: mark("with the class {instead} instead of {requested}"),
}
_ONE: Final = {
    ChangeKind.DEVICES: mark("with 1 device instead of {requested}"),
    ChangeKind.CPU: mark("with 1 core instead of {requested}"),
}


def change_sentence(change: Change) -> str:
    """Return *change* as one sentence: what instead, for how many machines, how soon."""
    phrase = _PHRASES[change.kind]
    if change.instead == "1":
        phrase = _ONE.get(change.kind, phrase)
    values = {
        "instead": _amount(change.kind, change.instead),
        "requested": _amount(change.kind, change.requested),
    }
    text = said(phrase, values)
    machines = say_many("%1 machine", "%1 machines", change.machines)
    free = say("%1 free now", change.free_now) if change.free_now else _wait(change)
    return say(
        "{change}: {machines}, {free}.",
        change=f"{text[0].upper()}{text[1:]}",
        machines=machines,
        free=free or say("none free now"),
    )


def _wait(change: Change) -> str:
    if change.starts_by is None:
        return ""
    return say("it starts no later than %1", f"{change.starts_by:%Y-%m-%d %H:%M %Z}")


def _amount(kind: ChangeKind, text: str) -> str:
    """Return an amount of bytes as people read it: ``20 GiB`` for ``20G``."""
    is_bytes = kind in {ChangeKind.DEVICE_MEMORY, ChangeKind.MEMORY, ChangeKind.DISK}
    if is_bytes and text[-1:].isalpha():
        return f"{text[:-1]} {text[-1]}iB"
    return text
