"""Who the Hub's word makes an admin or a reader of the fleet, and who it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_builders import a_principal, a_record
from traitlets.config import Config

from fleet_hub.config import configure
from fleet_hub.controller.audit_entry import ActorRole
from fleet_hub.errors import ConfigurationError
from fleet_hub.fleet_scopes import ADMIN, DEFINITIONS, READ
from fleet_hub.service.visitors import Visitor, visitor_of
from fleet_hub.service_settings import SETTINGS_VARIABLE


ACCESS = "access:services!service=fleet"


def told(
    *scopes: str, admin: bool = False, by_token: bool = False
) -> tuple[bool, bool]:
    """Return whether ada administers the fleet and sees all of it, with *scopes*."""
    model = {"name": "ada", "admin": admin, "scopes": [ACCESS, *scopes]}
    visitor = visitor_of(model, by_token=by_token)
    return visitor.admin, visitor.sees_all


@pytest.mark.parametrize("by_token", [True, False])
def test_a_scope_lets_in_whom_a_role_gave_it(*, by_token: bool) -> None:
    """Reading is seeing all; administering is both; nobody else is let in."""
    assert told(by_token=by_token) == (False, False)
    assert told(READ, by_token=by_token) == (False, True)
    assert told(ADMIN, by_token=by_token) == (True, True)
    assert told(ADMIN, READ, by_token=by_token) == (True, True)
    assert told(admin=True, by_token=by_token) == (True, True)


@pytest.mark.parametrize(
    "scope",
    [
        *(f"{READ}!user=ada", f"{ADMIN}!user=ada", f"{ADMIN}!group=bio"),
        *("custom:fleet:write", "custom:fleet", "custom:fleet:*", f"x{ADMIN}"),
        *("admin:users", "admin-ui", "read:metrics", "custom:fleet:admin:more"),
    ],
)
def test_no_other_scope_counts(scope: str) -> None:
    """One with a filter is about less than the fleet; others are about something else."""
    assert told(scope) == (False, False)


def test_a_token_that_was_made_to_look_does_not_act() -> None:
    """Even a Hub admin's; a log-in, or a token with all that they may do, still does."""
    assert told(READ, admin=True, by_token=True) == (False, True)
    assert told(READ, "admin:users", admin=True, by_token=True) == (True, True)
    assert told(READ, ADMIN, admin=True, by_token=True) == (True, True)
    assert told(READ, admin=True) == (True, True)


def test_who_reads_acts_on_their_own_alone() -> None:
    """They see what is not theirs, and what is theirs is theirs as before."""
    reader, admin = Visitor(name="rita", reader=True), Visitor(name="gwen", admin=True)
    theirs = a_record(principal=a_principal("rita"))
    another = a_record(principal=a_principal("ada"))
    for record in (theirs, another):
        assert reader.may_see(record)
        assert admin.may_see(record)
        assert admin.may_act_on(record)
    assert reader.may_act_on(theirs)
    assert not reader.may_act_on(another)
    assert reader.actor_of(theirs).role is ActorRole.USER
    assert admin.actor_of(another).role is ActorRole.ADMIN
    assert reader.actor().role is ActorRole.USER


def test_nobody_is_given_a_scope_by_default(tmp_path: Path) -> None:
    """The Hub knows them, the log-in takes them along, and no role has one."""
    c = Config()
    configure(c, data_dir=tmp_path / "data")
    hub = c.JupyterHub
    assert hub.custom_scopes == DEFINITIONS
    (service,) = hub.services
    assert service["oauth_client_allowed_scopes"] == [READ, ADMIN]
    given = {scope for role in hub.load_roles for scope in role["scopes"]}
    assert not {READ, ADMIN} & (given | hub.extra_user_scopes)


def test_scopes_of_others_and_own_words_for_ours_stay(tmp_path: Path) -> None:
    """What the configuration has defined before is added to."""
    c = Config()
    other = {"custom:grades:read": {"description": "Grades"}}
    own = {READ: {"description": "Sieht alles"}}
    c.JupyterHub.custom_scopes = {**other, **own}
    configure(c, data_dir=tmp_path / "data")
    assert c.JupyterHub.custom_scopes == {**DEFINITIONS, **other, **own}


def test_scopes_that_replace_ours_are_refused_when_the_service_starts(
    tmp_path: Path,
) -> None:
    """Otherwise every log-in would ask for what the Hub does not know."""
    c = Config()
    configure(c, data_dir=tmp_path / "data")
    tell = c.JupyterHub.services[0]["environment"][SETTINGS_VARIABLE]
    assert tell(None)
    c.JupyterHub.custom_scopes = {"custom:grades:read": {"description": "Grades"}}
    with pytest.raises(ConfigurationError, match="set it before"):
        tell(None)


def test_an_external_controllers_log_in_takes_them_along_too(tmp_path: Path) -> None:
    """Whoever starts the controller, the same roles let the same people in."""
    token = tmp_path / "token"
    token.write_text("t" * 32)
    token.chmod(0o600)
    c = Config()
    configure(
        c,
        data_dir=tmp_path / "data",
        external_controller="http://10.0.0.5:8098",
        service_token_file=token,
    )
    (service,) = c.JupyterHub.services
    assert service["oauth_client_allowed_scopes"] == [READ, ADMIN]
