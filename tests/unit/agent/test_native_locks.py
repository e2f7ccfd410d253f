"""Locks let in what is pinned and hashed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_agent.drivers.base import DriverError
from fleet_agent.drivers.native.environments.locks import (
    OWN_LOCKS,
    Locks,
    parse_lock,
)
from fleet_contracts.reasons import Reason


HASH = f"--hash=sha256:{'0' * 64}"


def test_every_own_lock_is_pinned_hashed_and_names_no_address() -> None:
    """The locks that come with the agent mean the same on every machine."""
    locks = Locks(OWN_LOCKS)

    assert "jupyter" in locks.refs()
    assert tuple(locks.sound()) == locks.refs()
    for ref, lock in locks.sound().items():
        assert len(lock.packages) > 50
        assert b"://" not in lock.content
        assert b"torch" not in lock.content or ref != "jupyter"


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
        Locks(OWN_LOCKS).read(ref)

    explanation = refused.value.explanation
    assert explanation.reason is Reason.RUNTIME_MISSING
    assert not ref or ref not in (explanation.detail or "")


def test_an_owners_lock_is_added_and_hides_its_namesake(tmp_path: Path) -> None:
    """What is put into the folder counts at once."""
    locks = Locks(tmp_path, OWN_LOCKS)
    assert locks.refs() == ("jupyter",)

    (tmp_path / "torch.lock").write_text(f"torch==2.9 {HASH}\n")
    (tmp_path / "jupyter.lock").write_text(f"jupyterlab==4.6 {HASH}\n")
    (tmp_path / "Not A Name.lock").write_text(f"six==1 {HASH}\n")

    assert locks.refs() == ("jupyter", "torch")
    assert locks.read("torch").packages == ("torch",)
    assert locks.read("jupyter").packages == ("jupyterlab",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"torch==2.9\n", Reason.ENVIRONMENT_HASH_MISMATCH),
        (b"\xff\xfe", Reason.RUNTIME_MISSING),
    ],
)
def test_a_bad_lock_costs_itself_only(
    tmp_path: Path, content: bytes, reason: Reason
) -> None:
    """Whoever asks for it is told why; the others go on."""
    (tmp_path / "torch.lock").write_bytes(content)
    locks = Locks(tmp_path, OWN_LOCKS)

    assert list(locks.sound()) == ["jupyter"]
    with pytest.raises(DriverError) as refused:
        locks.read("torch")
    assert refused.value.explanation.reason is reason
