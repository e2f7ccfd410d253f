"""A start through the Hub, as far as the controller hears of it."""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import Any

from hub_pages import Visitor
from jupyterhub import orm
from scripted_controller import Link, ScriptedController


CPU = {"user_options": {"profile": "cpu"}}


async def begin(
    visitor: Visitor,
    controller: ScriptedController,
    body: dict[str, Any] | None = None,
    *,
    server: str = "",
) -> tuple[Future[Any], Link]:
    """Start through REST; return the answer to come, and the attended link."""
    path = f"users/{visitor.name}/server{f's/{server}' if server else ''}"
    answer = asyncio.ensure_future(
        visitor.api("POST", path, CPU if body is None else body)
    )
    link = asyncio.ensure_future(controller.links.get())
    await asyncio.wait([answer, link], return_when=asyncio.FIRST_COMPLETED)
    assert link.done(), answer.result()
    return answer, link.result()


def tokens_of(hub: Any, name: str) -> list[orm.APIToken]:
    """Return the valid tokens that were issued to servers of *name*."""
    user = hub.users[name]
    query = hub.db.query(orm.APIToken).filter_by(user_id=user.orm_user.id)
    return [token for token in query if (token.note or "").startswith("Server at")]
