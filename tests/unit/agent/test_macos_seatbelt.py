"""The profile of a Mac's sandbox means what was intended, whoever reads it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from seatbelt_language import Profile, parse, texts

from fleet_agent.drivers.native.macos.seatbelt import SeatbeltPlan, profile


STATE = "/Users/ada/Library/Application Support/jupyterhub-fleet/agent/native"
TREE = f"{STATE}/environments/0f3c/tree"
PYTHON = "/Users/ada/.local/share/uv/python/cpython-3.11"
BOOT = f"{STATE}/boot/77aa"
NOTEBOOK = f"{STATE}/notebooks/ada-default"
TEMPORARY = f"{STATE}/runs/1234/tmp"
PLAN = SeatbeltPlan(read=(TREE, PYTHON, BOOT), write=(NOTEBOOK, TEMPORARY))
CPU = Profile(profile(PLAN))
GPU = Profile(profile(SeatbeltPlan(read=PLAN.read, write=PLAN.write, metal=True)))

INTENDED = [
    # what                              read   write  run
    (f"{NOTEBOOK}/work.ipynb", True, True, True),
    (f"{TEMPORARY}/x", True, True, True),
    (f"{TREE}/bin/python", True, False, True),
    (f"{TREE}/lib/python3.11/site-packages/x.py", True, False, True),
    (f"{PYTHON}/bin/python3.11", True, False, True),
    (f"{BOOT}/fleet_agent/drivers/native/inside/server.py", True, False, True),
    ("/usr/lib/libSystem.B.dylib", True, False, True),
    ("/System/Library/Frameworks/Metal.framework/Metal", True, False, True),
    ("/opt/homebrew/bin/git", True, False, True),
    ("/private/etc/hosts", True, False, False),
    ("/dev/urandom", True, False, False),
    # the agent's own secrets, and other runs and notebooks
    (f"{STATE}/../token", False, False, False),
    (
        "/Users/ada/Library/Application Support/jupyterhub-fleet/agent/token",
        False,
        False,
        False,
    ),
    (f"{STATE}/runs/1234/sandbox.sb", False, False, False),
    (f"{STATE}/runs/1234/server.log", False, False, False),
    (f"{STATE}/runs/9999/tmp/x", False, False, False),
    (f"{STATE}/notebooks/ada-other/x", False, False, False),
    (f"{NOTEBOOK}-2/x", False, False, False),
    # the owner's other files, and other people's
    ("/Users/ada/.ssh/id_ed25519", False, False, False),
    ("/Users/ada/Documents/tax.pdf", False, False, False),
    ("/Users/ada/Library/Keychains/login.keychain-db", False, False, False),
    ("/Users/bob/x", False, False, False),
    ("/Volumes/Backup/x", False, False, False),
    # the rest of the system
    ("/private/etc/master.passwd", False, False, False),
    ("/private/etc/ssl/private/key.pem", False, False, False),
    ("/private/tmp/x", False, False, False),
    ("/private/var/folders/aa/x", False, False, False),
    ("/opt/homebrew/var/postgres/x", False, False, False),
    ("/Applications/Mail.app/x", False, False, False),
    ("/dev/disk0", False, False, False),
]


@pytest.mark.parametrize(("path", "read", "write", "run"), INTENDED)
@pytest.mark.parametrize("rules", [CPU, GPU], ids=["cpu", "mps"])
def test_files_are_open_as_intended(
    rules: Profile, path: str, *, read: bool, write: bool, run: bool
) -> None:
    """The notebook's own folder and temp are writable; other people's are not there."""
    assert rules.allows("file-read-data", path=path) is read
    assert rules.allows("file-write-create", path=path) is write
    assert rules.allows("process-exec", path=path) is run


@pytest.mark.parametrize("folder", ["/Users/ada", "/Users", STATE, f"{STATE}/runs"])
def test_the_folders_on_the_way_show_that_they_are_there_and_no_more(
    folder: str,
) -> None:
    """A program may ask what a part of its path is, and may not list it."""
    assert CPU.allows("file-read-metadata", path=folder)
    assert not CPU.allows("file-read-data", path=folder)


def test_terminals_work_and_devices_stay_closed() -> None:
    """Pseudo-terminals can be opened, written and resized; disks cannot be touched."""
    for path in ("/dev/ptmx", "/dev/ttys004"):
        assert CPU.allows("file-read-data", path=path)
        assert CPU.allows("file-write-data", path=path)
        assert CPU.allows("file-ioctl", path=path)
    assert CPU.allows("pseudo-tty")
    assert CPU.allows("file-write-data", path="/dev/null")
    assert not CPU.allows("file-write-unlink", path="/dev/null")
    assert not CPU.allows("file-ioctl", path="/dev/disk0")


def test_the_network_is_open_and_the_machines_sockets_are_not() -> None:
    """Names resolve and servers listen; no path leads to another program's socket."""
    assert CPU.allows("network-outbound", end="remote ip")
    assert CPU.allows("network-inbound", end="local ip")
    assert CPU.allows("network-bind", end="local ip")
    assert CPU.allows("network-outbound", path="/private/var/run/mDNSResponder")
    assert CPU.allows("network-outbound", path=f"{TEMPORARY}/kernel.sock")
    for path in ("/private/var/run/docker.sock", "/Users/ada/.ssh/agent.sock"):
        assert not CPU.allows("network-outbound", path=path)


def test_no_other_process_can_be_touched() -> None:
    """Signals and questions stay within the sandbox; nothing is started outside."""
    assert CPU.allows("signal", target="same-sandbox")
    assert not CPU.allows("signal", target="others")
    assert not CPU.allows("process-info-pidinfo", target="others")
    for operation in ("appleevent-send", "lsopen", "job-creation", "mach-register"):
        assert not CPU.allows(operation)


@pytest.mark.parametrize(
    "service",
    [
        *("com.apple.SecurityServer", "com.apple.tccd", "com.apple.pasteboard.1"),
        *("com.apple.coreservices.appleevents", "com.apple.windowserver.active"),
    ],
)
def test_services_that_hold_secrets_or_screens_are_not_reached(service: str) -> None:
    """The keychain, the clipboard and the screen are nobody's business here."""
    assert not CPU.allows("mach-lookup", name=service)
    assert not GPU.allows("mach-lookup", name=service)


def test_only_a_gpu_class_is_given_the_gpu() -> None:
    """A CPU class gets no client of the GPU's driver, and no compiler for it."""
    for client in ("AGXDeviceUserClient", "IOSurfaceRootUserClient"):
        assert GPU.allows("iokit-open", name=client)
        assert not CPU.allows("iokit-open", name=client)
    assert GPU.allows("mach-lookup", name="com.apple.MTLCompilerService")
    assert not CPU.allows("mach-lookup", name="com.apple.MTLCompilerService")
    assert not GPU.allows("iokit-open", name="IOHIDLibUserClient")


def test_the_same_plan_gives_the_same_text() -> None:
    """Pure, so that a text can be compared and a difference means something."""
    assert profile(PLAN) == profile(SeatbeltPlan(read=PLAN.read, write=PLAN.write))


@given(folder=st.text(min_size=1, max_size=60).filter(lambda text: "\x00" not in text))
def test_no_name_of_a_folder_can_be_a_rule(folder: str) -> None:
    """Quotes, brackets, backslashes and line ends in a name stay in the name."""
    path = f"/Users/ada/{folder}"
    text = profile(SeatbeltPlan(read=(), write=(path,)))

    assert path in set(texts(parse(text)))
    rules = Profile(text)
    assert rules.allows("file-write-create", path=f"{path}/x")
    assert not rules.allows("file-read-data", path="/Users/bob/x")
    assert not rules.allows("anything-else")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    """A NUL would end the text for whoever reads it in C."""
    with pytest.raises(ValueError, match="cannot be the name"):
        profile(SeatbeltPlan(read=(), write=("/Users/ada/a\x00b",)))


@pytest.mark.parametrize(
    "text",
    [
        "(version 1)(allow default",
        "(version 1))",
        "(deny default)",
        '(version 1)(allow file-read* (anywhere "/"))',
        '(version 1)(allow "file-read*")',
        "(version 1)(permit default)",
    ],
)
def test_the_reader_of_profiles_refuses_what_it_does_not_understand(text: str) -> None:
    """A test that reads profiles is worth something only if it can say no."""
    with pytest.raises(ValueError, match=r".+"):
        Profile(text).allows("file-read-data", path="/x")


def test_the_reader_of_profiles_lets_the_last_rule_decide() -> None:
    """As macOS does."""
    rules = Profile(
        '(version 1)(deny default)(allow file-read* (subpath "/a"))'
        '(deny file-read-data (literal "/a/secret"))'
    )
    assert rules.allows("file-read-data", path="/a/b")
    assert not rules.allows("file-read-data", path="/a/secret")
    assert rules.allows("file-read-metadata", path="/a/secret")
    assert not rules.allows("file-read-data", path="/ab")
