"""Whom a role of the Hub lets see the fleet, or administer it: pages, API and terminal.

What each may do on every endpoint is in ``test_authorisation_walk``.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from attended_start import AttendedStart
from command_line import jupyter_fleet
from fleet_controller import an_ask
from fleet_service import Service, a_service
from page_visits import Visit, add_people, entries
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RedirectHandler

from fleet_hub.fleet_scopes import ADMIN, READ


pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

PAGES = ("", "machines", "machines/box", "line", "decisions", "holds", "profiles")
MORE_PAGES = ("catalog", "audit", "usage")
ONLY_LOOKS = "You may see all of the fleet, and act on what is yours alone"


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Return a service where alice waits, rita may look and gwen may act."""
    async with a_service(tmp_path) as running:
        add_people(running.hub)
        running.hub.add_user("rita", scopes=[READ])
        running.hub.add_user("gwen", scopes=[READ, ADMIN])
        await running.enrol("box", "alice")
        start = await AttendedStart(running, an_ask()).open()
        await start.until("waiting")
        yield running


async def workload_of(service: Service) -> str:
    """Return alice's workload."""
    return str((await service.status())["workload"])


async def read(service: Service, who: str) -> dict[str, str]:
    """Return what *who* reads on each page, without the page's own proofs and times."""
    browser = Visit(service, who)
    workload = await workload_of(service)
    found = {}
    for path in (*PAGES, *MORE_PAGES, f"workloads/{workload}"):
        code, text = await browser.visit(path)
        assert code == 200, path
        main = text.partition("<main")[2].partition("</main>")[0]
        main = re.sub(r"(?s)<(form|details class=\"leave\").*?</\1.*?>", "", main)
        found[path] = " ".join(unescape(re.sub(r"<[^>]*>", " ", main)).split())
    return found


async def test_who_may_read_reads_every_page_as_an_admin_does(service: Service) -> None:
    """And is led to each of them; nothing there is theirs to press."""
    rita, workload = Visit(service, "rita"), await workload_of(service)
    _, page = await rita.visit("")
    for path in ("line", "holds", "profiles", "catalog", "audit"):
        assert f'href="/services/fleet/{path}"' in page
    assert "All servers on the fleet" in page
    for path in (*PAGES, *MORE_PAGES, f"workloads/{workload}"):
        code, page = await rita.visit(path)
        assert code == 200, path
        assert 'method="post"' not in page, path
        assert "Action" not in page, path
    hers, admins = await read(service, "rita"), await read(service, "root")
    assert hers["holds"] == admins["holds"]
    assert "alice / default" in hers["line"]
    assert "alice" in hers["machines"]
    assert "word: its owner alone." in hers["machines/box"]
    told = await service.json("api/queue", token="token hub-token-of-rita")
    assert [item["user"] for item in told["waiting"]] == ["alice"]


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("workloads/{workload}/leave", {}),
        ("workloads/{workload}/move", {"place": "first"}),
        ("machines/box/drain", {}),
        ("machines/box/lost", {}),
        ("machines/box/rotate", {}),
    ],
)
async def test_who_may_only_read_is_told_so_when_they_act(
    service: Service, action: str, values: dict[str, str]
) -> None:
    """A sentence and nothing done, on the page and in the API, though the proof is right."""
    deed = action.format(workload=await workload_of(service))
    before = await entries(service)
    rita = Visit(service, "rita")
    _, page = await rita.visit("line")
    # The proof against other sites' pages is right: it is not that which refuses her.
    found = re.search(r'data-xsrf="([^"]+)"', page)
    assert found is not None
    code, page = await rita.submit("line", deed, proof=found[1], **values)
    assert code == 403
    assert ONLY_LOOKS in page
    response = await service.fetch(
        f"api/{deed}", method="POST", body=values, token="token hub-token-of-rita"
    )
    assert response.code == 403
    assert ONLY_LOOKS in json.loads(response.body)["message"]
    assert await entries(service) == before
    assert (await service.status())["state"] != "stopped"


async def test_an_admin_by_a_role_acts_and_the_log_has_their_name(
    service: Service,
) -> None:
    """On pages and in the API, as an admin of the Hub does."""
    gwen, workload = Visit(service, "gwen"), await workload_of(service)
    code, _ = await gwen.submit("machines/box", "machines/box/drain", why="a move")
    assert code == 200
    code, _ = await gwen.submit("line", f"workloads/{workload}/move", place="last")
    assert code == 200
    token = "token hub-token-of-gwen"
    done = await service.json(
        f"api/workloads/{workload}/move",
        method="POST",
        body={"place": "first", "why": "a course", "by": "somebody else"},
        token=token,
    )
    assert done == {"workload": workload, "place": "first"}
    done = await service.json("api/machines/box/lost", method="POST", token=token)
    assert done["said"].startswith("Declared lost")
    assert (await entries(service))[-4:] == [
        ("gwen", "drained", "box"),
        ("gwen", "moved_in_line", workload),
        ("gwen", "moved_in_line", workload),
        ("gwen", "declared_lost", "box"),
    ]
    log = (await service.json("api/audit?limit=2", token=token))["entries"]
    assert [entry["role"] for entry in log] == ["admin", "admin"]
    assert log[1]["why"] == "a course"


@pytest.mark.parametrize(
    ("body", "code"),
    [({}, 400), ({"place": "front"}, 400), ({"place": "first", "why": "x" * 999}, 400)],
)
async def test_a_move_that_is_none_is_refused(
    service: Service, body: dict[str, Any], code: int
) -> None:
    """By the API as by the form, and nobody's place changes."""
    workload = await workload_of(service)
    path = f"api/workloads/{workload}/move"
    token = "token hub-token-of-root"
    response = await service.fetch(path, method="POST", body=body, token=token)
    assert response.code == code
    assert not [done for done in await entries(service) if done[1] == "moved_in_line"]


async def test_only_an_admin_gives_codes_and_nobody_for_the_hubs_own_machine(
    service: Service,
) -> None:
    """That machine is trusted with an address that nobody tries: it takes its terminal."""
    body = {"name": "new", "owner": "alice"}
    for who, wanted in (("rita", 403), ("alice", 403), ("gwen", 201), ("root", 201)):
        token = f"token hub-token-of-{who}"
        response = await service.fetch(
            "api/codes", method="POST", body=body, token=token
        )
        assert response.code == wanted, who
        response = await service.fetch(
            "api/codes", method="POST", body={**body, "local": True}, token=token
        )
        assert response.code == 403, who


# ------------------------------------------------------------------ from a terminal


@pytest.fixture
def token_of(tmp_path: Path) -> Any:
    """Return a maker of token files."""

    def write(who: str) -> str:
        path = tmp_path / f"token-{who}"
        path.write_text(f"hub-token-of-{who}\n")
        path.chmod(0o600)
        return str(path)

    return write


async def test_a_terminal_anywhere_does_what_its_token_may(
    service: Service, token_of: Any
) -> None:
    """Each command, through the Hub, as the person whose token it is."""
    workload = await workload_of(service)

    async def ran(who: str, *words: str) -> Any:
        where = ("--service", service.url, "--token-file", token_of(who))
        return await jupyter_fleet(None, *words, *where)

    for words in (
        ("machines",),
        ("queue",),
        ("audit",),
        ("usage",),
        ("export",),
        ("catalog", "status"),
        ("explain", workload),
        ("explain", "--profile", "jupyter", "--user", "alice"),
    ):
        assert (await ran("rita", *words)).status == 0, words
        assert (await ran("gwen", *words)).status == 0, words
        # What he himself has used is his to read.
        wanted = 0 if words == ("usage",) else 1
        assert (await ran("bob", *words)).status == wanted, words
    for words in (
        ("drain", "box"),
        ("resume", "box"),
        ("queue", "move", workload, "first", "--why", "a course"),
        ("queue", "move", workload, "usual"),
        ("members", "box", "bob", "@bio"),
        ("audience", "box", "member"),
        ("enrol", "new", "--owner", "alice"),
        ("rotate", "box"),
        ("revoke", "box"),
        ("lost", "box"),
    ):
        refused = await ran("rita", *words)
        assert refused.status == 1, words
        assert ONLY_LOOKS in refused.err or "Only admins" in refused.err, words
        assert (await ran("bob", *words)).status == 1, words
        done = await ran("gwen", *words)
        assert done.status == 0, (words, done.err)
    did = [entry for entry in await entries(service) if entry[0] == "gwen"]
    assert [action for _, action, _ in did][:4] == [
        *("drained", "resumed", "moved_in_line", "moved_in_line")
    ]
    assert not [
        entry for entry in await entries(service) if entry[0] in {"rita", "bob"}
    ]


async def test_a_terminal_of_the_hubs_machine_moves_somebody(service: Service) -> None:
    """With the name of who sits there; a workload that is not there is said to be none."""
    workload = await workload_of(service)
    done = await jupyter_fleet(service, "queue", "move", workload, "first")
    assert (done.status, done.out) == (
        0,
        f"{workload}: first in the line, within the quotas\n",
    )
    gone = await jupyter_fleet(service, "queue", "move", "w000", "first")
    assert gone.status == 1
    assert "there is no workload 'w000'" in gone.err
    await service.json("internal/servers/1-1/leave", method="POST")
    over = await jupyter_fleet(service, "queue", "move", workload, "last")
    assert over.status == 1
    assert "It does not wait in the line any more." in over.err


async def test_a_token_goes_nowhere_but_where_it_was_sent(token_of: Any) -> None:
    """A service that leads elsewhere is told apart from one that answers."""
    [listener] = bind_sockets(0, "127.0.0.1")
    port = listener.getsockname()[1]
    asked: list[str] = []

    def note(handler: Any) -> None:
        asked.append(handler.request.path)

    server = HTTPServer(
        Application(
            [
                (
                    "/fleet/(.*)",
                    RedirectHandler,
                    {"url": f"http://127.0.0.1:{port}/else"},
                )
            ],
            log_function=note,
        )
    )
    server.add_sockets([listener])
    url = f"http://127.0.0.1:{port}/fleet"
    words = ("queue", "--service", url, "--token-file", token_of("gwen"))
    ran = await jupyter_fleet(None, *words)
    assert ran.status == 1
    assert "answered 301" in ran.err
    assert asked == ["/fleet/api/queue"]
    server.stop()
    await server.close_all_connections()


async def test_a_terminal_without_a_token_is_told_what_is_missing(
    tmp_path: Path, token_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence each, before anything is asked."""
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    url = ("--service", "https://hub.example.org/services/fleet")
    public = tmp_path / "public"
    public.write_text("t")
    public.chmod(0o644)
    for words, says in (
        (url, "--service needs a token of the Hub"),
        ((*url, "--data-dir", "/x"), "name --service, or --data-dir"),
        (("--token-file", token_of("gwen")), "--token-file is for --service"),
        (("--service", "hub.example.org"), "is no address"),
        ((*url, "--token-file", str(public)), "can be read by others"),
        ((*url, "--token-file", str(tmp_path / "none")), "cannot be read"),
    ):
        ran = await jupyter_fleet(None, "queue", *words)
        assert ran.status == 1, words
        assert says in ran.err, words
