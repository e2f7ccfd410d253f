"""The catalog: look-ups keep the admin's order, and the public view has no refs."""

from __future__ import annotations

import json

import pytest

from fleet_contracts.catalog import (
    Audience,
    Catalog,
    Profile,
    ResourceClass,
    Runtime,
    public_view,
)
from fleet_contracts.time_limits import SetBy, TimeLimit, TimeLimits, in_force
from fleet_contracts.workloads import Accelerator, DriverName, Principal


CPU = ResourceClass(name="cpu", title="CPU", cpu_milli=1000, memory_bytes=1)
BIG = ResourceClass(
    name="big", title="Big", cpu_milli=9000, memory_bytes=1, limit_seconds=60
)
ONE = Runtime(name="one", accelerators=(Accelerator.CPU,), ref="x")
TWO = Runtime(name="two", accelerators=(Accelerator.CPU,), ref="x")
MPS = CPU.model_copy(update={"name": "mps", "accelerator": Accelerator.MPS})
LAB = Profile(name="lab", title="Lab", classes=("big", "cpu"), runtimes=("two", "one"))
CATALOG = Catalog(classes=(CPU, BIG), runtimes=(ONE, TWO), profiles=(LAB,))


def test_choices_keep_the_profiles_order_and_runtimes_the_catalogs() -> None:
    """The first class is the default; the first runtime that serves is selected."""
    assert CATALOG.classes_of(LAB) == (BIG, CPU)
    assert CATALOG.runtimes_of(LAB) == (ONE, TWO)
    assert CATALOG.class_named("cpu") is CPU
    assert CATALOG.profile_named("lab") is LAB
    assert CATALOG.class_named("none") is None
    assert CATALOG.profile_named("none") is None


@pytest.mark.parametrize(
    ("by_class", "by_profile", "counts", "set_by"),
    [
        (60.0, None, 60.0, SetBy.CLASS),
        (None, 30.0, 30.0, SetBy.PROFILE),
        (60.0, 30.0, 30.0, SetBy.PROFILE),
        (30.0, 60.0, 30.0, SetBy.CLASS),
        (30.0, 30.0, 30.0, SetBy.CLASS),
    ],
)
def test_a_limit_is_known_with_the_entry_that_set_it(
    by_class: float | None, by_profile: float | None, counts: float, set_by: SetBy
) -> None:
    """Of two equal ones the class is named: it is what a user holds."""
    limits = {"limit_seconds": by_class, "idle_limit_seconds": by_class}
    chosen = CPU.model_copy(update=limits)
    limits = {"limit_seconds": by_profile, "idle_limit_seconds": by_profile}
    profile = LAB.model_copy(update=limits)
    told = TimeLimit(seconds=counts, set_by=set_by)
    found = CATALOG.time_limits(profile, chosen)
    assert found == TimeLimits(limit=told, idle_limit=told)


def test_what_runs_keeps_its_limit_and_whose_it_is_only_if_that_is_still_so() -> None:
    """A catalog that has changed says nothing of what was placed before."""
    offered = TimeLimit(seconds=60, set_by=SetBy.CLASS)
    assert in_force(60, offered) == offered
    assert in_force(90, offered) == TimeLimit(seconds=90)
    assert in_force(90, None) == TimeLimit(seconds=90)
    assert in_force(None, offered) is None


def test_the_shorter_time_limit_counts() -> None:
    """Neither the class nor the profile can lengthen the other's limit."""
    short = LAB.model_copy(update={"limit_seconds": 30.0})
    assert CATALOG.limit_seconds(LAB, CPU) is None
    assert CATALOG.limit_seconds(LAB, BIG) == 60
    assert CATALOG.limit_seconds(short, BIG) == 30
    assert CATALOG.limit_seconds(short, CPU) == 30


def test_the_digest_changes_with_every_ref() -> None:
    """Two catalogs that dispatch differently have different digests."""
    other = Runtime(
        name="one", accelerators=ONE.accelerators, driver_refs={DriverName.NATIVE: "y"}
    )
    before = CATALOG.digest
    changed = CATALOG.model_copy(update={"runtimes": (other, TWO)})
    assert changed.digest != before
    assert CATALOG.model_copy().digest == before


def test_the_public_view_names_profiles_and_classes_only() -> None:
    """No runtime, no ref, no audience, no label of the record."""
    text = json.dumps(public_view(CATALOG))
    assert json.loads(text)["profiles"][0]["classes"][0]["limit_seconds"] == 60
    for word in ("one", "ref", "audience", "labels", "runtimes"):
        assert f'"{word}"' not in text


def test_an_audience_is_everybody_or_the_named() -> None:
    """A user belongs by name or by any of their groups."""
    bio = Audience(everyone=False, users=("ada",), groups=("bio",))
    assert Audience().includes(Principal(user_id=1, name="x"))
    assert bio.includes(Principal(user_id=1, name="ada"))
    assert bio.includes(Principal(user_id=2, name="x", groups=("lab", "bio")))
    assert not bio.includes(Principal(user_id=3, name="bio", groups=("lab",)))


def test_a_runtime_does_not_show_its_refs_in_a_log() -> None:
    """The representation of a runtime is safe to log."""
    runtime = Runtime(
        name="one",
        accelerators=(Accelerator.CPU,),
        ref="secret-a",
        container_ref="secret-b",
        driver_refs={DriverName.NATIVE: "secret-c"},
    )
    assert "secret" not in repr(runtime)
    assert "secret" not in repr(Catalog(runtimes=(runtime,)))


def test_the_shorter_idle_limit_counts_and_is_told() -> None:
    """Beside the time limit, and independent of it."""
    idle = CPU.model_copy(update={"idle_limit_seconds": 7200.0})
    brief = LAB.model_copy(update={"idle_limit_seconds": 3600.0})
    assert CATALOG.idle_limit_seconds(LAB, CPU) is None
    assert CATALOG.idle_limit_seconds(LAB, idle) == 7200
    assert CATALOG.idle_limit_seconds(brief, idle) == 3600
    assert CATALOG.idle_limit_seconds(brief, CPU) == 3600
    assert CATALOG.idle_limit_seconds(brief, MPS) is None, "nobody sees it compute"
    offered = CATALOG.model_copy(update={"profiles": (brief,)})
    for chosen in public_view(offered)["profiles"][0]["classes"]:
        assert chosen["idle_limit_seconds"] == 3600
