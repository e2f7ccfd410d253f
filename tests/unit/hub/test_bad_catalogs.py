"""Catalogs as admins get them wrong: all faults at once, and the earlier one stays."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
from edited_catalogs import GOOD, edit, looked

from fleet_contracts.catalog_file import CatalogError
from fleet_hub.catalog_check import load_catalog
from fleet_hub.service.catalogs import FileCatalog


LINE_OF_MORE: Final = 13
"""What is added to the profile stands here."""


def changed(*edits: tuple[str, str], more: str = "") -> str:
    """Return the good catalog with some texts replaced, and *more* at its end."""
    text = GOOD
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text + more


def classes(entry: str, accelerator: str = "cpu") -> str:
    """Return the good catalog with another class."""
    return changed(
        ("  cpu: 1\n", f"  {entry}\n  cpu: 1\n"),
        ("[cpu]", f"[{accelerator}]"),
    )


def profile(entry: str) -> str:
    """Return the good catalog with more in its profile."""
    return GOOD + f"  {entry}\n"


TWO: Final = "- name: big\n  title: {title}\n  cpu: 2\n  memory: 2G\nruntimes:\n"

CASES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "a tab": (
        changed(("  cpu", "\tcpu")),
        ("3: this is not YAML: found character '\\t'", "Use spaces"),
    ),
    "a tab as in JSON": ('{\n\t"classes": []\n}', ("2: ", "Use spaces")),
    "a key twice": (
        classes("cpu: 2"),
        ("4: the key 'cpu' appears twice, first on line 3",),
    ),
    "a section twice": (
        changed(more="classes:\n- {name: b, cpu: 1, memory: 1G}\n"),
        ("13: the key 'classes' appears twice, first on line 1",),
    ),
    "an entry twice by an alias": (
        changed(("- name: small", "- &a\n  name: small"), ("runtimes", "- *a\nruntimes")),
        ("'small' is defined twice, first at",),
    ),
    "two entries on one line": (
        "classes: [{name: small, cpu: 1, memory: 1G}, {name: small, cpu: 2, memory: 1G}]\n"
        + GOOD.split("memory: 1G\n", 1)[1],
        ("1: 'small' is defined twice, first at",),
    ),
    "a merge key": (
        changed(
            ("- name: small", "- &a\n  name: small"),
            ("runtimes", "- <<: *a\n  name: big\nruntimes"),
            ("[small]", "[small, big]"),
        ),
        ("6: a key must be a plain text, and << is none. Write out",),
    ),
    "a star that is no alias": (
        changed(more="quotas:\n- {group: *, devices: 1}\n"),
        ("14: this is not YAML", "Put the value in quotes"),
    ),
    "an at sign": (
        changed(more="quotas:\n- {user: @ada, devices: 1}\n"),
        ("14: this is not YAML", "Put the value in quotes"),
    ),
    "a colon in a title": (
        classes("title: a: b"),
        ("3: this is not YAML", "put a text with a colon in quotes"),
    ),
    "no colon": (
        changed(("cpu: 1", "cpu 1")),
        ("4: this is not YAML", "a colon and a space"),
    ),
    "an open bracket": (changed(("[small]", "[small")), ("12: ", "Close the bracket")),
    "two documents": (
        f"{GOOD}---\n{GOOD}",
        ("13: this is not YAML: found another document", "one document a file"),
    ),
    "a null byte": (
        changed(more="\0"),
        ("13: this cannot be read: the character U+0000 is not allowed",),
    ),
    "a class that builds an object": (
        changed(("cpu: 1", "cpu: !!python/object/apply:os.system [x]")),
        ("3: the tag", "Remove the tag"),
    ),
    "a Cyrillic letter": (
        changed(("name: small", "name: sm\N{CYRILLIC SMALL LETTER A}ll")),
        ("2: ", "it has U+0430 (cyrillic small letter a)"),
    ),
    "a letter that is not seen": (
        changed(("name: small", "name: small\N{ZERO WIDTH SPACE}")),
        ("2: 'small\\u200b' is no name: it has U+200B (zero width space)",),
    ),
    "quotes of a word processor": (
        changed(
            (
                "name: small",
                "name: {}small{}".format(
                    "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
                ),
            )
        ),
        ("2: ", "left double quotation mark", "such as 'small'"),
    ),
    "digits of another script": (
        changed(("cpu: 1", "cpu: \N{FULLWIDTH DIGIT ONE}")),
        ("3: ", "is no number of cores"),
    ),
    "capitals": (changed(("small\n", "Small\n")), ("2: 'Small' is no name",)),
    "a name that is a truth value": (
        changed(("name: small", "name: no"), ("[small]", "['no']")),
        ("2: 'name' must be a text", "11: profile 'nb' names 'no'"),
    ),
    "decimal units": (changed(("1G", "1GB")), ("4: '1GB' is no amount of bytes",)),
    "a space before the unit": (changed(("1G", "1 G")), ("4: ", "1024-based")),
    "a decimal comma": (changed(("1G", "'1,5G'")), ("4: ", "1024-based")),
    "a negative amount": (changed(("cpu: 1", "cpu: -1")), ("3: ", "write 2, 0.5")),
    "an endless amount": (changed(("cpu: 1", "cpu: .inf")), ("3: ", "write 2, 0.5")),
    "hours with a colon": (profile("limit: 8:00"), ("13: '8:00' is no duration",)),
    "weeks": (profile("limit: 2w"), ("13: '2w' is no duration",)),
    "no value": (changed(("cpu: 1", "cpu:")), ("3: 'cpu' has no value",)),
    "an audience of nobody": (profile("audience:"), ("13: 'audience' has no value",)),
    "an audience without names": (profile("audience: {}"), ("13: ", "to nobody")),
    "a limit of nothing": (profile("limit: ~"), ("13: 'limit' has no value",)),
    "a limit of a quota of nothing": (
        changed(more="quotas:\n- {user: ada, workloads: 1, devices: }\n"),
        ("14: 'devices' has no value",),
    ),
    "no time to prepare": (
        profile("deadlines: {prepare: 0}"),
        ("13: profile 'nb' leaves no time to prepare",),
    ),
    "a priority with an underscore": (
        profile("priority: 1_0"),
        ("13: 'priority' must be a whole number. Write digits only",),
    ),
    "a priority with a point": (
        profile("priority: 5.0"),
        ("13: 'priority' must be a whole number",),
    ),
    "devices with an exponent": (
        classes("accelerator: cuda\n  devices: 1e0", "cuda"),
        ("4: 'devices' must be a whole number",),
    ),
    "a quota with an underscore": (
        changed(more="quotas:\n- {user: ada, workloads: 1_000}\n"),
        ("14: 'workloads' must be a whole number",),
    ),
    "a weight with an exponent": (
        changed(more="shares: {users: {ada: 1e3}}\n"),
        ("13: 'ada' must be a number",),
    ),
    "a weight that is endless": (
        changed(more="shares: {users: {ada: .inf}}\n"),
        ("13: 'ada' must be a number",),
    ),
    "a user with a blank behind": (
        profile("audience: {users: ['ada ']}"),
        ("13: 'users[0]' begins or ends with a blank. Remove it",),
    ),
    "a group with a blank that is not seen": (
        profile('audience: {groups: ["bio\N{ZERO WIDTH SPACE}"]}'),
        ("13: a character that is not seen is in the text: U+200B (zero width space)",),
    ),
    "a title that is not seen": (
        classes("title: \N{ZERO WIDTH SPACE}"),
        ("3: a character that is not seen is in the text",),
    ),
    "a title of what joins letters": (
        classes("title: \N{ZERO WIDTH JOINER}"),
        ("3: the title is blank",),
    ),
    "a title that turns the page around": (
        classes("title: a\N{RIGHT-TO-LEFT OVERRIDE}b"),
        ("3: a character that is not seen is in the text: U+202E",),
    ),
    "two titles that differ in what is not seen": (
        changed(
            ("name: small", "name: small\n  title: Small"),
            ("runtimes:\n", TWO.format(title="'Sm\N{ZERO WIDTH JOINER}all'")),
            ("[small]", "[small, big]"),
        ),
        ("7: class 'big' has the title of class 'small' at ", ":3."),
    ),
    "a blank ref": (
        changed(("{native: lab}", "{native: ' '}")),
        ("8: 'native' begins or ends with a blank",),
    ),
    "a ref of two words": (
        changed(("{native: lab}", "{docker: 'a b'}")),
        ("8: 'docker' has a blank in it. Write one name",),
    ),
    "an older ref of two words": (
        changed(("driver_refs: {native: lab}", "container_ref: a b")),
        ("8: 'container_ref' has a blank in it",),
    ),
    "classes as a set": (
        changed(("[small]", "!!set {small}")),
        ("11: the tag 'tag:yaml.org,2002:set' is not supported",),
    ),
    "brackets in brackets": (
        changed(more=f"quotas: {'[' * 30}{']' * 30}\n"),
        ("13: this cannot be read: it is nested too deeply",),
    ),
    "an alias of itself": (
        changed(more="quotas: &a\n- *a\n"),
        ("13: this cannot be read: it repeats itself through aliases",),
    ),
    "a priority above all": (
        profile("priority: 99999999999999999999"),
        ("13: 'priority' is too large",),
    ),
    "a fraction of a device": (
        classes("accelerator: cuda\n  devices: 0.5", "cuda"),
        ("4: 'devices' must be a whole number",),
    ),
    "entries that are keys": (
        "classes:\n  small: {cpu: 1, memory: 1G}\n" + GOOD.split("memory: 1G\n", 1)[1],
        ("1: classes must be a list. Begin each entry with a dash",),
    ),
    "a list that is a text": (
        changed(("[small]", "small")),
        ("11: 'classes' must be a list. Write it as [one, two]",),
    ),
    "an accelerator that is none": (
        changed(("[cpu]", "[gpu]")),
        ("7: 'accelerators[0]' has an unknown value",),
    ),
    "an accelerator that is only detected": (
        classes("accelerator: rocm", "rocm"),
        ("3: class 'small' can never be scheduled: rocm is only detected so far",),
    ),
    "two classes with one title": (
        changed(
            ("name: small", "name: small\n  title: Small one"),
            ("runtimes:\n", TWO.format(title="'small   ONE'")),
            ("[small]", "[small, big]"),
        ),
        ("7: class 'big' has the title of class 'small' at ", ":3."),
    ),
    "a class called as another is titled": (
        changed(
            ("runtimes:\n", TWO.format(title="small")),
            ("[small]", "[small, big]"),
        ),
        ("6: class 'big' has the title of class 'small' at ", ":2."),
    ),
    "two profiles with one title": (
        changed(
            ("name: nb\n", "name: nb\n  title: Lab\n"),
            more="- {name: nb2, title: LAB, classes: [small], runtimes: [lab]}\n",
        ),
        ("14: profile 'nb2' has the title of profile 'nb' at ", ":11."),
    ),
    "a blank title": (classes("title: '  '"), ("3: the title is blank",)),
    "a title of two lines": (classes('title: "a\\nb"'), ("3: a title must be one line",)),
    "a Mac with a compute capability": (
        classes("compute_capability: 8.0\n  accelerator: mps", "mps"),
        ("3: class 'small' asks for what only an NVIDIA GPU has",),
    ),
    "CUDA on a Mac": (
        classes("accelerator: cuda", "cuda") + "  requirements: {os: [macos]}\n",
        ("12: profile 'nb' can never run with class 'small': cuda is on linux only",),
    ),
    "Metal where only containers are named": (
        classes("accelerator: mps", "mps, cpu").replace(
            "{native: lab}", "{docker: lab}\n  ref: lab"
        ),
        ("13: no runtime of profile 'nb' names what a machine runs for class 'small'",),
    ),
    "Metal on Linux": (
        classes("accelerator: mps", "mps") + "  requirements: {os: [linux]}\n",
        ("12: profile 'nb' can never run with class 'small': mps is on macos only",),
    ),
    "CUDA's torch on Metal": (
        classes("accelerator: mps", "mps")
        + "  requirements: {capabilities: [torch.cuda]}\n",
        ("12: ", "no machine has mps and torch.cuda"),
    ),
    "a runtime with Metal's torch for CUDA": (
        classes("accelerator: cuda", "cuda").replace(
            "  driver_refs", "  requires: [torch.mps]\n  driver_refs"
        ),
        ("13: ", "no machine has cuda and torch.mps"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_edit_is_told_once_with_its_line_and_keeps_the_earlier_catalog(
    tmp_path: Path, case: str
) -> None:
    """One mistake is one fault, with where it is and what to do."""
    text, expected = CASES[case]
    file = tmp_path / "catalog.yaml"
    file.write_text(GOOD)
    catalogs = FileCatalog(file)
    before = catalogs.current()
    edit(file, text)

    assert not looked(catalogs)

    faults = catalogs.status().faults
    lines = [part for part in expected if re.match("[0-9]+: ", part)]
    assert len(faults) == max(1, len(lines)), [str(fault) for fault in faults]
    told = "\n".join(str(fault) for fault in faults)
    for part in expected:
        assert (f"{file}:{part}" if part in lines else part) in told
    assert all(fault.remedy for fault in faults)
    assert catalogs.current() is before
    edit(file, GOOD.replace("cpu: 1", "cpu: 2"))
    assert looked(catalogs)
    assert not catalogs.status().faults


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        changed(("cpu: 1", "cpu: 010"), ("1G", "1.5g")),
        changed(("cpu: 1", "cpu: 500m"), ("1G", "1Gi")),
        changed(("1G", "512")),
        # People of one audience never see the other's profile.
        changed(
            ("name: nb\n", "name: nb\n  title: Lab\n  audience: {groups: [a]}\n"),
            more="- {name: nb2, title: Lab, classes: [small], runtimes: [lab], "
            "audience: {groups: [b]}}\n",
        ),
        # What else a runtime serves is not asked for.
        changed(("[cpu]", "[cpu, rocm]")),
    ],
)
def test_what_is_only_unusual_loads(tmp_path: Path, text: str) -> None:
    """Line ends and marks of other systems, and every unit that has one meaning."""
    file = tmp_path / "catalog.yaml"
    file.write_bytes(text.encode())
    assert load_catalog(file).profiles[0].name == "nb"


def test_all_files_of_a_folder_tell_their_faults_at_once(tmp_path: Path) -> None:
    """What one broken file would have brought is missed in no other."""
    head, rest = GOOD.split("runtimes:\n", 1)
    (tmp_path / "1-classes.yaml").write_text(head.replace("  cpu", "\tcpu"))
    (tmp_path / "2-rest.yaml").write_text(f"runtimes:\n{rest}  limit: 8:00\n")
    (tmp_path / "3-latin.yaml").write_bytes("shares: {}\n# für\n".encode("latin-1"))
    (tmp_path / "4-other.yml").write_text("- a\n")
    (tmp_path / "5-gone.yaml").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "6-pipe.yaml")
    (tmp_path / "notes.txt").write_text("no catalog")
    (tmp_path / "7-folder.yaml").mkdir()
    with pytest.raises(CatalogError) as caught:
        load_catalog(tmp_path)
    told = sorted((Path(one.file).name, one.line) for one in caught.value.faults)
    assert told == [
        ("1-classes.yaml", 3),
        ("2-rest.yaml", 9),
        ("3-latin.yaml", 2),
        ("4-other.yml", 1),
        ("5-gone.yaml", 1),
    ]
