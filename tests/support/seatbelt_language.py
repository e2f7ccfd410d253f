"""Reads the profile language of macOS, and answers what a profile allows.

Written from what the language means, and not from how our profiles are made: a text
that it does not understand is an error, and so is an operation that nobody named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


Node = str | list["Node"]

_TOKEN = re.compile(
    r"""\s+|;[^\n]*|(?P<open>\()|(?P<close>\))"""
    r"""|(?P<text>"(?:[^"\\]|\\.)*")|(?P<regex>\#"[^"]*")|(?P<word>[^\s()";\#]+)""",
    re.DOTALL,
)


class Text(str):
    """A text of the language, told apart from a word."""

    __slots__ = ()


class Regex(str):
    """A regular expression of the language."""

    __slots__ = ()


def parse(source: str) -> list[Node]:
    """Return the forms of *source*.

    Raises:
        ValueError: it is not of the language.
    """
    stack: list[list[Node]] = [[]]
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise ValueError(f"no word of the language: {source[position:][:40]!r}")
        position = match.end()
        if match["open"]:
            stack.append([])
        elif match["close"]:
            if len(stack) == 1:
                raise ValueError("a bracket closes that nobody opened")
            form = stack.pop()
            stack[-1].append(form)
        elif match["text"]:
            stack[-1].append(
                Text(re.sub(r"\\(.)", r"\1", match["text"][1:-1], flags=re.DOTALL))
            )
        elif match["regex"]:
            stack[-1].append(Regex(match["regex"][2:-1]))
        elif match["word"]:
            stack[-1].append(match["word"])
    if len(stack) != 1:
        raise ValueError("a bracket is never closed")
    return stack[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One thing that a program does."""

    operation: str
    path: str | None = None
    """The file, with links followed."""
    name: str | None = None
    """The service, or the class of the driver's client."""
    end: str | None = None
    """``local ip`` or ``remote ip`` of a connection."""
    target: str | None = None
    """Whom a signal goes to: ``same-sandbox`` or ``others``."""


class Profile:
    """A profile; of all rules that match the last one decides."""

    def __init__(self, source: str) -> None:
        """Read *source*."""
        version, *rules = parse(source)
        if version != ["version", "1"]:
            raise ValueError(f"the profile begins with {version!r}")
        self._rules = [_rule(form) for form in rules]

    def allows(self, operation: str, **facts: str) -> bool:
        """Whether a program may do that."""
        asked = Asked(operation=operation, **facts)
        answer: str | None = None
        for action, operations, filters in self._rules:
            named = any(fnmatchcase(operation, each) for each in operations)
            if named and (
                not filters or any(_matches(each, asked) for each in filters)
            ):
                answer = action
        return answer == "allow"


def _rule(form: Node) -> tuple[str, list[str], list[list[Node]]]:
    if not isinstance(form, list) or form[0] not in ("allow", "deny"):
        raise ValueError(f"no rule: {form!r}")
    operations: list[str] = []
    filters: list[list[Node]] = []
    for part in form[1:]:
        if isinstance(part, list):
            filters.append(part)
        elif filters or isinstance(part, Text | Regex):
            raise ValueError(f"an operation was expected: {part!r}")
        else:
            operations.append("*" if part == "default" else part)
    if not operations:
        raise ValueError(f"a rule about nothing: {form!r}")
    return str(form[0]), operations, filters


def _matches(form: Sequence[Node], asked: Asked) -> bool:
    kind, *values = form
    match kind, values:
        case "subpath", [Text(folder)]:
            base = folder.rstrip("/")
            return asked.path is not None and (
                asked.path == folder or asked.path.startswith(f"{base}/")
            )
        case "literal", [Text(path)]:
            return asked.path == path
        case "regex", [Regex(pattern)]:
            return asked.path is not None and re.search(pattern, asked.path) is not None
        case (("global-name" | "iokit-user-client-class"), [Text(name)]):
            return asked.name == name
        case (("local" | "remote"), ["ip"]):
            return asked.end == f"{kind} ip"
        case "target", ["same-sandbox"]:
            return asked.target == "same-sandbox"
    raise ValueError(f"no filter that we know: {form!r}")


def texts(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield every text in *nodes*."""
    for node in nodes:
        if isinstance(node, Text):
            yield str(node)
        elif isinstance(node, list):
            yield from texts(node)
