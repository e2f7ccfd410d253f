"""The sandbox's command, by literal equality: a changed word is a changed border."""

from __future__ import annotations

from fleet_agent.drivers.common.accounts import Account
from fleet_agent.drivers.native.bubblewrap import BubblewrapTools, command
from fleet_agent.drivers.native.sandbox import (
    Access,
    Link,
    Mount,
    SandboxPlan,
)


PLAN = SandboxPlan(
    account=Account(uid=1_900_000_007, gid=1_900_000_007, name="anna"),
    mounts=(
        Mount(source="/usr", target="/usr"),
        Mount(source="/etc/hosts", target="/etc/hosts"),
        Mount(source="/usr/share/zoneinfo/UTC", target="/etc/localtime"),
        Mount(source="/opt/python", target="/opt/python"),
        Mount(source="/state/env/tree", target="/opt/fleet/environment"),
        Mount(source="/state/nb", target="/home/jovyan", access=Access.WRITE),
        Mount(source="/state/tmp", target="/tmp", access=Access.WRITE),
        Mount(source="/dev/nvidia0", target="/dev/nvidia0", access=Access.DEVICE),
    ),
    links=(Link(path="/bin", to="usr/bin"), Link(path="/var/tmp", to="/tmp")),
    command=("/opt/fleet/environment/bin/python", "-I"),
    status_fd=7,
)

NAMESPACES = "--unshare-pid --unshare-ipc --unshare-cgroup-try"
VIEW = (
    "--json-status-fd 7"
    " --perms 0755 --dir /etc --perms 0755 --dir /home"
    " --perms 0755 --dir /opt --perms 0755 --dir /opt/fleet --perms 0755 --dir /var"
    " --symlink usr/bin /bin --symlink /tmp /var/tmp"
    " --ro-bind /usr /usr --ro-bind /etc/hosts /etc/hosts"
    " --ro-bind /usr/share/zoneinfo/UTC /etc/localtime"
    " --ro-bind /opt/python /opt/python"
    " --ro-bind /state/env/tree /opt/fleet/environment"
    " --bind /state/nb /home/jovyan --bind /state/tmp /tmp"
    " --proc /proc --dev /dev --perms 1777 --tmpfs /dev/shm"
    " --dev-bind /dev/nvidia0 /dev/nvidia0"
    " --remount-ro /dev --remount-ro / --chdir / --"
)


def test_an_agent_that_is_root_drops_everything_inside() -> None:
    """Only what setpriv needs is kept until setpriv has run."""
    tools = BubblewrapTools(bwrap="/usr/bin/bwrap", setpriv="/usr/bin/setpriv")

    assert command(PLAN, tools) == (
        f"/usr/bin/bwrap {NAMESPACES} --new-session --cap-drop ALL"
        " --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP"
        f" {VIEW}"
        " /usr/bin/setpriv --reuid 1900000007 --regid 1900000007 --clear-groups"
        " --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs"
        " /opt/fleet/environment/bin/python -I"
    ).split(" ")


def test_an_agent_without_rights_uses_one_user_namespace_and_forbids_more() -> None:
    """The uid inside is the agent's own."""
    tools = BubblewrapTools(bwrap="/usr/bin/bwrap", setpriv=None)

    assert command(PLAN, tools) == (
        f"/usr/bin/bwrap {NAMESPACES} --unshare-user --disable-userns"
        " --uid 1900000007 --gid 1900000007 --new-session --cap-drop ALL"
        f" {VIEW} /opt/fleet/environment/bin/python -I"
    ).split(" ")


def test_a_workload_outlives_its_agent() -> None:
    """The sandbox is told neither to die with its parent nor to share the root."""
    for setpriv in (None, "/usr/bin/setpriv"):
        words = command(PLAN, BubblewrapTools(bwrap="bwrap", setpriv=setpriv))

        assert "--die-with-parent" not in words
        assert ("--ro-bind", "/", "/") not in zip(
            words, words[1:], words[2:], strict=False
        )
        assert "/run" not in words
