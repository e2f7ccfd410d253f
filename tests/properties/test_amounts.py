"""Whatever is written, an amount is read back as itself or refused."""

from __future__ import annotations

from hypothesis import given, strategies as st

from fleet_contracts.amounts import (
    LARGEST,
    AmountError,
    format_bytes,
    format_cores,
    format_seconds,
    parse_bytes,
    parse_cores,
    parse_seconds,
)


@given(st.integers(min_value=0, max_value=LARGEST))
def test_bytes_survive_being_written(amount: int) -> None:
    """Formatting loses nothing."""
    assert parse_bytes(format_bytes(amount)) == amount


@given(st.integers(min_value=0, max_value=10**9))
def test_cores_survive_being_written(milli: int) -> None:
    """Formatting loses nothing."""
    assert parse_cores(format_cores(milli)) == milli


@given(st.integers(min_value=0, max_value=10**9))
def test_durations_survive_being_written(seconds: int) -> None:
    """Formatting loses nothing."""
    assert parse_seconds(format_seconds(seconds)) == seconds


@given(st.text(max_size=40))
def test_no_text_is_read_as_a_negative_amount(text: str) -> None:
    """Any text is an amount from zero up, or refused; nothing else is raised."""
    for parse in (parse_bytes, parse_cores, parse_seconds):
        try:
            amount = parse(text)
        except AmountError:
            continue
        assert 0 <= amount <= LARGEST
