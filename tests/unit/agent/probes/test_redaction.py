"""A recording keeps what a tool said, and not who uses the machine."""

from __future__ import annotations

import pytest

from fleet_agent.probes.redact import Redaction


def a_redaction() -> Redaction:
    """Return the redaction of a machine called "bright-owl" of a user "annika"."""
    return Redaction(
        words={"bright-owl": "host", "annika": "user"}, home="/home/annika"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "0, GPU-5f2c3a11-9d3e-4c1b-8a77-0123456789ab, H100",
            "0, GPU-00000000-0000-0000-0000-000000000001, H100",
        ),
        ("/home/annika/env/bin/python", "/home/user/env/bin/python"),
        ("/Users/someone/Library", "/Users/user/Library"),
        (r"C:\Users\someone\x", r"C:\Users\user\x"),
        ("Linux bright-owl 6.1.0", "Linux host 6.1.0"),
        ("user annika is missing groups", "user user is missing groups"),
        ('"Serial Number": "PCB1234567"', '"Serial Number": "REDACTED"'),
        (
            "    Serial Number                         : 1650823",
            "    Serial Number                         : REDACTED",
        ),
        ('"Unique ID": "0x7f1c2d3e4f5a6b7c"', '"Unique ID": "REDACTED"'),
        ('"Serial Number": "N/A"', '"Serial Number": "N/A"'),
        ("ether 8c:85:90:aa:bb:cc", "ether 00:00:00:00:00:00"),
        ('"address": "203.0.113.77"', '"address": "192.0.2.1"'),
        ("127.0.0.1", "127.0.0.1"),
        ("api_token=abc123", "api_token=REDACTED"),
        (
            "/docker/0123456789abcdef0123456789abcdef0123456789abcdef",
            f"/docker/{'0' * 32}",
        ),
    ],
)
def test_personal_details_are_replaced(text: str, expected: str) -> None:
    """Names, serials, identities, addresses and secrets go; the form stays."""
    assert a_redaction()(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "0, NVIDIA H100 80GB HBM3, 81559, 550.54.15, 00000000:0B:00.0, 9.0",
        "WARNING: infoROM is corrupted at gpu 0000:67:00.0",
        '"VRAM Total Memory (B)": "17163091968"',
        "gfx90a:sramecc+:xnack-",
        "Driver Version: 535.161.08",
        "Failed to initialize NVML: Driver/library version mismatch\r\n",
    ],
)
def test_what_a_probe_reads_stays_as_it_was(text: str) -> None:
    """Versions, amounts, bus ids and line ends are what a recording is for."""
    assert a_redaction()(text) == text


def test_equal_identities_stay_equal_and_others_different() -> None:
    """Two lists of one machine can still be joined by UUID."""
    redact = a_redaction()
    first, second = (f"GPU-{digit * 8}-1111-1111-1111-111111111111" for digit in "ab")
    texts = [redact(first), redact(second), redact(first.upper())]

    assert texts[0].lower() == texts[2].lower()
    assert texts[0] != texts[1]
