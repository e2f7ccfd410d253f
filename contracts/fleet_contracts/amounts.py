"""Amounts as people write them: ``512``, ``1.5G``, ``2g``, ``0.5`` cores, ``8h``.

Each text has one meaning.  ``G``, ``g``, ``Gi`` and ``GiB`` are all 1024³ bytes, as in
JupyterHub; ``GB`` is refused, because half of its readers mean 1000³.  A negative
amount, an exponent and a fraction of the smallest unit are refused.  Formatting gives
a text that reads back as the same amount.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from typing import Final

from fleet_contracts.language import say_many


LARGEST: Final = 2**63 - 1
"""What a database column holds; nothing sensible is larger."""

_DECIMAL: Final = re.compile(r"([0-9]{1,24})(?:\.([0-9]{1,12}))?", re.ASCII)
_BYTES: Final = re.compile(
    r"([0-9.]+)(?:([kmgtpe])(?:ib?)?)?", re.ASCII | re.IGNORECASE
)
_CORES: Final = re.compile(r"([0-9.]+)(m?)", re.ASCII)
_DURATION: Final = re.compile(
    r"(?:([0-9.]+)d)?(?:([0-9.]+)h)?(?:([0-9.]+)m)?(?:([0-9.]+)s?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS: Final = {letter: 1024**power for power, letter in enumerate("KMGTPE", 1)}
_SPANS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


class AmountError(ValueError):
    """A text that is no amount; the message says how to write one."""


def parse_bytes(text: str | float) -> int:
    """Return the number of bytes that *text* means.

    A fraction of a unit is cut to a whole byte; a fraction of a byte is refused.

    Raises:
        AmountError: it is no amount of bytes.
    """
    written = _written(text)
    match = _BYTES.fullmatch(written)
    if match is None:
        raise AmountError(
            f"{written!r} is no amount of bytes: write 512, 1.5G or 1Gi (1024-based)"
        )
    number = _decimal(match[1], written)
    if match[2] is None:
        return _whole(number, written, "a number of bytes")
    amount = number * _UNITS[match[2].upper()]
    return _bounded(int(amount.to_integral_value(ROUND_DOWN)), written)


def parse_cores(text: str | float) -> int:
    """Return the thousandths of a core that *text* means: ``0.5`` and ``500m`` are 500.

    Raises:
        AmountError: it is no amount of cores, or finer than a thousandth.
    """
    written = _written(text)
    match = _CORES.fullmatch(written)
    if match is None:
        raise AmountError(f"{written!r} is no number of cores: write 2, 0.5 or 500m")
    number = _decimal(match[1], written)
    return _whole(
        number if match[2] else number * 1000, written, "thousandths of a core"
    )


def parse_seconds(text: str | float) -> float:
    """Return the seconds that *text* means: ``90``, ``30m``, ``1h30m``, ``2d``.

    Raises:
        AmountError: it is no duration.
    """
    written = _written(text)
    match = _DURATION.fullmatch(written)
    if match is None or not written:
        raise AmountError(f"{written!r} is no duration: write 90s, 30m, 8h or 1d12h")
    total = sum(
        (
            _decimal(part, written) * span
            for part, span in zip(match.groups(), _SPANS.values(), strict=True)
            if part is not None
        ),
        Decimal(0),
    )
    _bounded(int(total), written)
    return float(total)


def format_bytes(amount: int) -> str:
    """Return the shortest exact text of *amount*, such as ``1.5G``."""
    for letter, unit in reversed(_UNITS.items()):
        if amount >= unit and amount * 1000 % unit == 0:
            return f"{_plain(Decimal(amount) / unit)}{letter}"
    return str(amount)


def format_cores(milli: int) -> str:
    """Return *milli* thousandths of a core as cores, such as ``0.5``."""
    return _plain(Decimal(milli) / 1000)


def format_seconds(seconds: float) -> str:
    """Return *seconds* as days, hours, minutes and seconds, such as ``1h30m``."""
    rest = Decimal(str(seconds))
    parts: list[str] = []
    for letter, span in _SPANS.items():
        count = rest if letter == "s" else rest // span
        rest -= count * span
        if count:
            parts.append(f"{_plain(count)}{letter}")
    return "".join(parts) or "0s"


def describe_bytes(amount: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return *amount* for people, to one decimal: ``7.8 GiB``.  It may be rounded."""
    for letter, unit in reversed(_UNITS.items()):
        if amount >= unit:
            tenths = (Decimal(amount) / unit).quantize(Decimal("0.1"), rounding)
            return f"{_plain(tenths)} {letter}iB"
    return say_many("%1 byte", "%1 bytes", amount)


def _written(text: str | float) -> str:
    # YAML reads 512 and 0.5 as numbers, and ``yes`` as a truth value.
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise AmountError(f"{text!r} is no amount: write a number with its unit")
    return text.strip() if isinstance(text, str) else str(text)


def _decimal(digits: str, written: str) -> Decimal:
    if _DECIMAL.fullmatch(digits) is None:
        raise AmountError(f"{written!r} is no amount: {digits!r} is no plain number")
    return Decimal(digits)


def _whole(number: Decimal, written: str, what: str) -> int:
    if number != number.to_integral_value():
        raise AmountError(f"{written!r} is no amount: it must be whole as {what}")
    return _bounded(int(number), written)


def _bounded(amount: int, written: str) -> int:
    if amount > LARGEST:
        raise AmountError(f"{written!r} is too large: the largest is {LARGEST}")
    return amount


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
