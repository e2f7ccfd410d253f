"""Amounts: each text has one meaning, and what has none is refused with the remedy."""

from __future__ import annotations

import pytest

from fleet_contracts.amounts import (
    LARGEST,
    AmountError,
    describe_bytes,
    format_bytes,
    format_cores,
    format_seconds,
    parse_bytes,
    parse_cores,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512", 512),
        (512, 512),
        ("0", 0),
        ("1K", 1024),
        ("1.5G", 3 * 2**29),
        ("1Gi", 2**30),
        ("1GiB", 2**30),
        ("2g", 2**31),
        ("2gi", 2**31),
        ("512m", 2**29),
        ("1T", 2**40),
        ("0.1K", 102),
        (" 1G ", 2**30),
    ],
)
def test_bytes_have_one_meaning(text: str | float, expected: int) -> None:
    """Every accepted way of writing an amount is 1024-based, as in JupyterHub."""
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text",
    ["-1G", "-1", -1, "1GB", "1TB", "", "G", "1e3", "1.G", ".5G", "1.2.3G", "nan",
     "inf", float("inf"), float("nan"), "1 G", "1G\n2G", "٣G", "512.5", 1.5, True,
     None, "9E", "9" * 30],
)  # fmt: skip
def test_what_is_no_amount_of_bytes_is_refused(text: str | float) -> None:
    """Negatives, decimal units, exponents and other alphabets are refused."""
    with pytest.raises(AmountError):
        parse_bytes(text)


def test_a_refused_amount_says_how_to_write_one() -> None:
    """The message carries the remedy."""
    with pytest.raises(AmountError, match=r"write 512, 1\.5G or 1Gi"):
        parse_bytes("1GB")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.5", 500), (0.5, 500), (2, 2000), ("500m", 500), ("0", 0), ("1.001", 1001)],
)
def test_cores_are_counted_in_thousandths(text: str | float, expected: int) -> None:
    """``0.5`` and ``500m`` are the same half core."""
    assert parse_cores(text) == expected


@pytest.mark.parametrize("text", ["-1", "0.0005", "0.5m", "1c", "", "m", True])
def test_what_is_no_number_of_cores_is_refused(text: str | float) -> None:
    """Finer than a thousandth is nothing that a machine can hold."""
    with pytest.raises(AmountError):
        parse_cores(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("8h", 28800),
        ("1H30M", 5400),
        ("1d12h", 129_600),
        ("0.5h", 1800),
        (1.5, 1.5),
    ],
)
def test_durations_are_seconds_unless_they_say_otherwise(
    text: str | float, expected: float
) -> None:
    """A bare number is seconds; units go from large to small."""
    assert parse_seconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "h", "-5m", "5m1h", "1w", "1..5h", "9" * 24, True]
)
def test_what_is_no_duration_is_refused(text: str | float) -> None:
    """Units out of order and unknown ones are refused."""
    with pytest.raises(AmountError):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, "0"), (512, "512"), (2**30, "1G"), (3 * 2**29, "1.5G"), (1023, "1023"),
     (1025, "1025"), (LARGEST, str(LARGEST))],
)  # fmt: skip
def test_bytes_are_written_with_the_largest_exact_unit(
    amount: int, expected: str
) -> None:
    """An amount that has no short exact text is written in bytes."""
    assert format_bytes(amount) == expected


def test_cores_and_durations_are_written_as_people_write_them() -> None:
    """No trailing zeros, no empty parts."""
    assert [format_cores(milli) for milli in (0, 500, 2000, 10_000)] == [
        "0",
        "0.5",
        "2",
        "10",
    ]
    assert [format_seconds(value) for value in (0, 90, 5400, 86400, 1.5)] == [
        "0s",
        "1m30s",
        "1h30m",
        "1d",
        "1.5s",
    ]


def test_amounts_for_people_are_rounded() -> None:
    """One decimal is enough to read."""
    assert describe_bytes(0) == "0 bytes"
    assert describe_bytes(2**30) == "1 GiB"
    assert describe_bytes(8_375_186_227) == "7.8 GiB"
