"""YAML as data with line numbers, within limits, and without surprises.

Numbers and dates stay texts as they were written: ``3.10`` is not 3.1 and ``010`` is
not 8.  Only truth values and null are read as such.  Nothing in the file can build an
object, and nothing in it can grow: aliases are followed within one budget.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

import yaml
from typing_extensions import override


MAX_CHARACTERS: Final = 1024 * 1024
_MAX_DEPTH: Final = 24
_MAX_NODES: Final = 100_000

_TAG: Final = "tag:yaml.org,2002:"
_TEXTS: Final = {f"{_TAG}{name}" for name in ("str", "int", "float", "timestamp")}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSEEN: Final = re.compile("[\u00ad\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""What nobody sees in an editor, and what turns the text behind it around."""
_REMEDIES: Final = (
    ("'\\t'", "Use spaces: YAML takes no tab here."),
    ("character '\\", "Correct the line."),
    ("found character '", "Put the value in quotes."),
    ("alphabetic or numeric character", "Put the value in quotes: * and & mean more."),
    ("undefined alias", "Put the value in quotes, or define the anchor above it."),
    (
        "mapping values are not allowed",
        "Indent the keys of an entry alike, and put a text with a colon in quotes.",
    ),
    ("expected ':'", "Write each key with a colon and a space behind it."),
    ("another document", "Write one document a file: remove the line of dashes."),
    ("expected ',' or", "Close the bracket."),
    ("expected <block end>", "Indent the keys of an entry alike."),
)
"""What to do about what the parser says, by a part of its words; the first counts."""
_TRUE: Final = frozenset({"yes", "true", "on"})

Path = tuple[str | int, ...]


class Source(NamedTuple):
    """One file: its name for messages, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong, where, and what to do about it."""

    file: str
    line: int
    message: str
    remedy: str

    @override
    def __str__(self) -> str:
        """Return the fault as compilers write one, so that editors can jump to it."""
        return f"{self.file}:{self.line}: {self.message}. {self.remedy}"


@dataclass(slots=True)
class Document:
    """What one file says, and on which line it says it."""

    source: Source
    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    blamed: set[Path] = field(default_factory=set)
    is_unread: bool = False
    """Nobody knows what else is in it."""

    def line_of(self, path: Path) -> int:
        """Return the line of *path*, or of the nearest thing around it."""
        around = (path[:length] for length in range(len(path), -1, -1))
        return next((self.lines[part] for part in around if part in self.lines), 1)

    def blame(self, path: Path, message: str, remedy: str) -> None:
        """Add a fault at *path*."""
        self.blamed.add(path)
        self.faults.append(
            Fault(
                file=self.source.name,
                line=self.line_of(path),
                message=message,
                remedy=remedy,
            )
        )


def read_yaml(source: Source) -> Document:
    """Return what *source* says; faults instead of exceptions, whatever the text is."""
    document = Document(source=source)
    if len(source.text) > MAX_CHARACTERS:
        document.is_unread = True
        document.blame(
            (), "the file is too large", f"Keep it below {MAX_CHARACTERS} characters."
        )
        return document
    try:
        _limit(source.text)
        node = yaml.compose(source.text, Loader=yaml.SafeLoader)
        if node is not None:
            document.data = _Reader(document).read(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        document.lines[()] = 1 if mark is None else mark.line + 1
        told, remedy = _problem(error)
        document.is_unread = True
        document.blame((), f"this is not YAML: {told}", remedy)
    except yaml.reader.ReaderError as error:
        document.lines[()] = source.text.count("\n", 0, error.position) + 1
        character = f"U+{error.character:04X}"
        document.is_unread = True
        document.blame(
            (),
            f"this cannot be read: the character {character} is not allowed",
            "Remove it.",
        )
    except _TooMuchError as error:
        document.is_unread = True
        document.lines[()] = error.line
        document.blame((), f"this cannot be read: {error}", "Correct the file.")
    return document


def _problem(error: yaml.MarkedYAMLError) -> tuple[str, str]:
    """Return what the parser found, and what to do about it."""
    told = error.problem or "it cannot be parsed"
    remedies = (remedy for part, remedy in _REMEDIES if part in told)
    return told.removeprefix("but "), next(remedies, "Correct the line.")


class _TooMuchError(Exception):
    """The file is nested or repeated beyond any use."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _limit(text: str) -> None:
    """Stop a deep file before anything recurses into it."""
    depth = line = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            line = cast("yaml.Mark", event.start_mark).line
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise _TooMuchError("it is nested too deeply", line + 1)


@dataclass(slots=True)
class _Reader:
    """Turns nodes into plain data, noting the line of each path."""

    document: Document
    budget: int = _MAX_NODES

    def read(self, node: yaml.Node, path: Path) -> Any:
        self.budget -= 1
        line = node.start_mark.line + 1
        if self.budget < 0 or len(path) > _MAX_DEPTH:
            raise _TooMuchError("it repeats itself through aliases", line)
        self.document.lines.setdefault(path, line)
        if node.tag == f"{_TAG}set":
            # What it names is read all the same, so that it is missed nowhere else.
            self._blame_tag(node, path)
            return [str(key.value) for key, _ in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return dict(self._entries(node, path))
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [
                self.read(item, (*path, number))
                for number, item in enumerate(node.value)
            ]
        return self._scalar(node, path)

    def _entries(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag not in _TEXTS:
                is_merge = key_node.tag == f"{_TAG}merge"
                self.document.lines[(*path, "?")] = line
                self.document.blame(
                    (*path, "?"),
                    "a key must be a plain text" + (", and << is none" * is_merge),
                    "Write out what it would bring."
                    if is_merge
                    else "Put it in quotes.",
                )
                continue
            key = key_node.value
            here = (*path, key)
            if key in seen:
                self.document.lines[here] = line
                self.document.blame(
                    here,
                    f"the key {key!r} appears twice, first on line {seen[key]}",
                    "Keep one of them.",
                )
                continue
            seen[key] = line
            self.document.lines[here] = line
            yield key, self.read(value_node, here)

    def _scalar(self, node: yaml.Node, path: Path) -> str | bool | None:
        if node.tag == f"{_TAG}null":
            return None
        if node.tag == f"{_TAG}bool":
            return node.value.lower() in _TRUE
        if node.tag not in _TEXTS:
            self._blame_tag(node, path)
            return None
        text = str(node.value)
        if _CONTROL.search(text):
            # No command line, label or page can carry one.
            self.document.blame(
                path, "a control character is in the text", "Remove it."
            )
            return _CONTROL.sub("", text)
        unseen = _UNSEEN.search(text)
        if unseen is not None and path[-1:] != ("name",):
            # Of a name it is told with all that a name may not have.
            name = unicodedata.name(unseen[0]).lower()
            self.document.blame(
                path,
                f"a character that is not seen is in the text: "
                f"U+{ord(unseen[0]):04X} ({name})",
                "Remove it.",
            )
            return _UNSEEN.sub("", text) or "?"
        return text

    def _blame_tag(self, node: yaml.Node, path: Path) -> None:
        self.document.blame(
            path, f"the tag {node.tag!r} is not supported", "Remove the tag."
        )
