"""Single-use login codes: one door, one time, one name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet_hub.local_login import LoginCodeAuthenticator
from fleet_hub.login_codes import LIFETIME_SECONDS, LoginCodes


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        """Begin at an arbitrary time."""
        self.now = 1_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that the test sets."""
    return Clock()


@pytest.fixture
def codes(tmp_path: Path, clock: Clock) -> LoginCodes:
    """No codes yet."""
    return LoginCodes(tmp_path / "hub" / "login-codes.json", clock)


def test_a_code_opens_once(codes: LoginCodes) -> None:
    """Whoever reads it over a shoulder later has nothing."""
    code = codes.make("ada")
    assert codes.spend("ada", code)
    assert not codes.spend("ada", code)


def test_a_code_is_for_one_name(codes: LoginCodes) -> None:
    """Trying it for another user neither opens nor spends it."""
    code = codes.make("ada")
    assert not codes.spend("bob", code)
    assert codes.spend("ada", code)


def test_a_code_may_be_typed_as_people_type(codes: LoginCodes) -> None:
    """Case, spaces and hyphens do not matter."""
    code = codes.make("ada")
    assert codes.spend("ada", f" {code.lower().replace('-', ' ')} ")


def test_a_new_code_voids_the_one_before(codes: LoginCodes) -> None:
    """At most one door is open per name."""
    old, new = codes.make("ada"), codes.make("ada")
    assert not codes.spend("ada", old)
    assert codes.spend("ada", new)


def test_a_code_ends_with_its_day(codes: LoginCodes, clock: Clock) -> None:
    """A terminal's scroll-back is no key for ever."""
    code = codes.make("ada")
    clock.now += LIFETIME_SECONDS
    assert not codes.spend("ada", code)


def test_codes_are_kept_as_hashes_that_only_the_hub_reads(
    codes: LoginCodes, tmp_path: Path
) -> None:
    """Who reads the file cannot log in with it."""
    code = codes.make("ada")
    path = tmp_path / "hub" / "login-codes.json"
    assert code not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", ["", "{", "[]", '{"ada": 3}', '{"ada": {}}'])
def test_half_a_file_opens_nothing_and_heals(
    codes: LoginCodes, tmp_path: Path, content: str
) -> None:
    """A torn write costs the codes in it, and no more."""
    code = codes.make("ada")
    path = tmp_path / "hub" / "login-codes.json"
    path.write_text(content)
    assert not codes.spend("ada", code)
    assert codes.spend("ada", codes.make("ada"))


def test_an_empty_code_opens_nothing(codes: LoginCodes, tmp_path: Path) -> None:
    """Not even where the stored hash is that of nothing."""
    assert not codes.spend("ada", "")
    codes.make("ada")
    assert json.loads((tmp_path / "hub" / "login-codes.json").read_text())
    assert not codes.spend("ada", "")


@pytest.mark.asyncio
async def test_the_authenticator_knows_users_by_the_hub_s_form_of_their_name(
    tmp_path: Path,
) -> None:
    """The Hub lowers names; the code was made for the lowered one."""
    path = tmp_path / "hub" / "login-codes.json"
    authenticator = LoginCodeAuthenticator(codes_file=str(path))
    code = LoginCodes(path).make("ada")
    data = {"username": "Ada", "password": code}
    assert await authenticator.authenticate(None, data) == "ada"
    assert await authenticator.authenticate(None, data) is None
