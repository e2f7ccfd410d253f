"""Locks let in what is pinned and hashed, and nothing else."""

from __future__ import annotations

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.environments.locks import (
    OWN_LOCKS,
    parse_lock,
    read_lock,
)
from fleet_contracts.reasons import Reason


HASH = f"--hash=sha256:{'0' * 64}"


def test_every_own_lock_is_pinned_hashed_and_names_no_address() -> None:
    """The locks that come with the agent mean the same on every machine."""
    locks = sorted(OWN_LOCKS.glob("*.lock"))

    assert locks
    for path in locks:
        lock = read_lock(OWN_LOCKS, path.stem)
        assert len(lock.packages) > 50
        assert b"://" not in lock.content
        assert b"torch" not in lock.content or path.stem != "jupyter"


def test_a_lock_lists_its_packages_in_order() -> None:
    """Markers and several hashes belong to an entry."""
    lock = parse_lock(
        f"one==1.0 \\\n    {HASH} \\\n    {HASH}\n"
        f"two==2 ; sys_platform == 'darwin' \\\n    {HASH}\n".encode()
    )

    assert lock.packages == ("one", "two")


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "six==1.0",
        f"six>=1.0 {HASH}",
        f"six {HASH}",
        f"six @ file:///somewhere/six.whl {HASH}",
        f"-e . {HASH}",
        f"--index-url http://example.org/simple\nsix==1.0 {HASH}",
        f"-r other.txt\nsix==1.0 {HASH}",
        f"six==1.0 {HASH} --config-settings=x=y",
        "six==1.0 --hash=md5:00000000000000000000000000000000",
        f"six==1.0 {HASH}0",
    ],
)
def test_an_entry_without_pin_or_hash_is_refused(entry: str) -> None:
    """One loose entry makes the whole lock unusable."""
    with pytest.raises(DriverError) as refused:
        parse_lock(entry.encode())

    assert refused.value.explanation.reason is Reason.ENVIRONMENT_HASH_MISMATCH


@pytest.mark.parametrize("ref", ["absent", "../jupyter", "/etc/passwd", "", "a/b"])
def test_an_unknown_ref_is_refused_and_not_repeated_to_the_user(ref: str) -> None:
    """A ref is an operator's fact, and never a path."""
    with pytest.raises(DriverError) as refused:
        read_lock(OWN_LOCKS, ref)

    explanation = refused.value.explanation
    assert explanation.reason is Reason.RUNTIME_MISSING
    assert not ref or ref not in (explanation.detail or "")
