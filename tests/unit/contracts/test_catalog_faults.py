"""A bad catalog tells everything that is wrong with it, once, and where."""

from __future__ import annotations

import pytest
from catalog_texts import PARTS, faults, with_part

from fleet_contracts.catalog_file import CatalogError, parse_catalog
from fleet_contracts.catalog_yaml import MAX_CHARACTERS, Source


def test_a_fault_is_told_in_its_own_file() -> None:
    """A name that two files define is blamed where it stands for the second time."""
    with pytest.raises(CatalogError) as caught:
        parse_catalog(
            [
                Source("one.yaml", with_part()),
                Source("two.yaml", "\n" + PARTS["class"] + "shares: {}\n"),
                Source("three.yaml", "shares: {}\n"),
            ]
        )
    assert [str(fault) for fault in caught.value.faults] == [
        "two.yaml:3: 'cpu' is defined twice, first at one.yaml:2. Rename one.",
        "three.yaml:1: shares stands twice, first in two.yaml. Keep it in one file.",
    ]


def test_all_faults_are_told_at_once_with_their_lines() -> None:
    """One run of the check is enough to correct the file."""
    told = faults(
        """\
        classes:
          - name: CPU Small
            cpu: -1
            memory: 1GB
            colour: red
          - name: mac
            accelerator: mps
            devices: 2
            cpu: 1
            memory: 1G
        runtimes:
          - name: env
            accelerators: [cpu]
            driver_refs: {native: env}
        profiles:
          - name: lab
            classes: [mac, mca]
            runtimes: [env]
            clases: [mac]
          - name: lab2
            classes: [mac, mca]
            runtimes: [env]
        """
    )
    assert told == [
        (
            "catalog.yaml:2: 'CPU Small' is no name. Use lower-case letters, digits and "
            "dashes, such as 'cpu-small'."
        ),
        "catalog.yaml:3: '-1' is no number of cores: write 2, 0.5 or 500m. Correct cpu.",
        (
            "catalog.yaml:4: '1GB' is no amount of bytes: write 512, 1.5G or 1Gi "
            "(1024-based). Correct memory."
        ),
        "catalog.yaml:5: the key 'colour' is unknown. Remove it.",
        "catalog.yaml:8: a Mac has one GPU. Write 1, or leave the key out.",
        "catalog.yaml:19: the key 'clases' is unknown. Did you mean 'classes'?",
        (
            "catalog.yaml:21: profile 'lab2' names 'mca', which is not among the classes. "
            "Did you mean 'mac'?"
        ),
        (
            "catalog.yaml:21: no runtime of profile 'lab2' serves class 'mac' (mps). Add a "
            "runtime with this accelerator, or remove the class."
        ),
    ]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"class": "classes: 3\n"}, "classes must be a list"),
        ({"class": "classes: [3]\n"}, "'the entry' must have keys and values"),
        ({"class": "classes:\n  - {cpu: 1, memory: 1}\n"}, "'name' is missing"),
        (
            {"class": "classes:\n  - {name: 日本, cpu: 1, memory: 1}\n"},
            "such as 'name'",
        ),
        (
            {"class": "classes:\n  - {name: cpu, cpu: 1, memory: 1, title: yes}\n"},
            "'title' must be a text. Put the value in quotes",
        ),
        (
            {"class": "classes:\n  - {name: cpu, cpu: 1, memory: 1, devices: -1}\n"},
            "'devices' must not be negative",
        ),
        (
            {"class": "classes:\n  - {name: cpu, cpu: 1, memory: 1, devices: x}\n"},
            "'devices' must be a whole number",
        ),
        (
            {"class": "classes:\n  - {name: cpu, cpu: 1, memory: 1, devices: 1}\n"},
            "is a CPU class and asks for devices",
        ),
        (
            {"class": "classes:\n  - {name: cpu, cpu: 1, memory: 1, limit: 1e400}\n"},
            "is no duration",
        ),
        (
            {
                "class": "classes:\n  - {name: cpu, accelerator: cuda, devices: 0, "
                "cpu: 1, memory: 1}\n"
            },
            "has an accelerator and asks for 0 devices",
        ),
        (
            {
                "class": "classes:\n  - {name: cpu, accelerator: gpu, cpu: 1, "
                "memory: 1}\n"
            },
            "'accelerator' has an unknown value. Write 'cpu', 'cuda', 'mps' or 'rocm'",
        ),
        (
            {
                "class": "classes:\n  - {name: cpu, accelerator: cuda, cpu: 1, "
                "memory: 1, compute_capability: eight}\n"
            },
            "'compute_capability' must look like 8.0",
        ),
        ({"class": PARTS["class"] + "  - {name: b, cpu: 1, memory: 1}\n"},
         "class 'b' cannot be reached"),
        ({"runtime": PARTS["runtime"] + "  - {name: b, accelerators: [cpu], ref: x}\n"},
         "runtime 'b' cannot be reached"),
        (
            {
                "runtime": PARTS["runtime"]
                + "  - {name: b, accelerators: [cpu], driver_refs: {native: b}}\n",
                "profile": "profiles:\n  - {name: lab, classes: [cpu], "
                "runtimes: [env, b]}\n",
            },
            "runtime 'b' is never selected",
        ),
        (
            {"runtime": "runtimes:\n  - {name: env, accelerators: [cpu]}\n"},
            "it has no usable ref",
        ),
        (
            {"runtime": "runtimes:\n  - {name: env, accelerators: [], ref: x}\n"},
            "'accelerators' is empty",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, accelerators: [cpu], "
                "driver_refs: {kubernetes: x}}\n"
            },
            "'kubernetes' is no agent driver: name docker or native",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, accelerators: [cpu], "
                "driver_refs: {native: /opt/env}}\n"
            },
            "the native ref of runtime 'env' is a path",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, accelerators: [mps], "
                "driver_refs: {docker: x, native: y}}\n"
            },
            "the docker ref of runtime 'env' is never used",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, accelerators: [cpu], ref: x, "
                "model_formats: [gguf]}\n"
            },
            "is for notebooks and has model formats",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, kind: endpoint, "
                "accelerators: [cpu], ref: x}\n"
            },
            "loads no model format",
        ),
        (
            {
                "runtime": "runtimes:\n  - {name: env, kind: endpoint, "
                "accelerators: [cpu], ref: x, model_formats: [gguf]}\n"
            },
            "profile 'lab' is for notebooks, and runtime 'env' is for endpoints",
        ),
        (
            {"profile": "profiles:\n  - {name: lab, classes: [cpu], runtimes: [evn]}\n"},
            "names 'evn', which is not among the runtimes. Did you mean 'env'?",
        ),
        (
            {"profile": "profiles:\n  - {name: lab, classes: [x], runtimes: [env]}\n"},
            "names 'x', which is not among the classes. Define it",
        ),
        (
            {
                "profile": "profiles:\n  - {name: lab, classes: [cpu, cpu], "
                "runtimes: [env]}\n"
            },
            "'cpu' is listed twice",
        ),
        (
            {
                "profile": "profiles:\n  - {name: lab, classes: [cpu], "
                "runtimes: [env], audience: {}}\n"
            },
            "is offered to nobody",
        ),
        (
            {
                "profile": "profiles:\n  - {name: lab, classes: [cpu], "
                "runtimes: [env], requirements: {pyhton: 3}}\n"
            },
            "the key 'pyhton' is unknown",
        ),
        ({"profile": PARTS["profile"] + "  - {name: LAB, classes: [cpu], runtimes: [env]}\n"},
         "'LAB' collides with 'lab'"),
        ({"quotas": "quotas:\n  - {user: a, group: b, cpu: 1}\n"}, "one user or one group"),
        ({"quotas": "quotas:\n  - {user: a}\n"}, "without any limit"),
        ({"shares": "shares: {half_life: 0}\n"}, "'half_life' must be above 0"),
        ({"shares": "shares: {users: {a: lots}}\n"}, "'a' must be a number"),
        ({"shares": "shares: {users: {a: nan}}\n"}, "'a' must be a number"),
        ({"trust": "trust: {weak: guest}\n"}, "no setting widens it"),
        ({"trust": "trust: 3\n"}, "'the entry' must have keys and values"),
        ({"more": "polices: 3\n"}, "the key 'polices' is unknown"),
        ({"more": "profile: 3\n"}, "Did you mean 'profiles'?"),
    ],
)  # fmt: skip
def test_each_kind_of_fault_has_its_own_words(
    parts: dict[str, str], expected: str
) -> None:
    """The message says what is wrong, and the remedy what to write."""
    assert any(expected in fault for fault in faults(with_part(**parts)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the catalog offers nothing"),
        ("classes:\n", "the catalog offers nothing"),
        ("- a\n", "the file must be a mapping"),
        ("a: [1\n", ":2: this is not YAML"),
        ("a: 1\n\tb: 2\n", ":2: this is not YAML"),
        ("a: \x00\n", "this cannot be read"),
        ("a: 1\n--- \nb: 2\n", "this is not YAML"),
        ('runtimes: [{ref: "a\\0b"}]\n', "a control character is in the text"),
        ("profiles: [{name: no}]\n", "'name' must be a text. Put the value in quotes."),
        (
            "quotas:\n- {user: a, workloads: 1}\n- {user: a, cpu: 2}\n",
            ":3: user 'a' has a second quota, the first at catalog.yaml:2",
        ),
        (
            "quotas: [{group: '*', workloads: 1}, {group: '*', devices: 2}]\n",
            "group '*' has a second quota",
        ),
        ("a: 1\nclasses: []\na: 2\n", ":3: the key 'a' appears twice, first on line 1"),
        ("? [1]\n: 2\n", "a key must be a plain text"),
        ("yes: 2\n", "a key must be a plain text"),
        ("<<: {a: 1}\n", "a key must be a plain text"),
        ("classes: !!python/object:os.system [x]\n", "is not supported"),
        ("classes: !!binary aGk=\n", "is not supported"),
        ("a: &a [*a]\n", "repeats itself through aliases"),
        ("[" * 5000, "nested too deeply"),
        ("x" * (MAX_CHARACTERS + 1), "the file is too large"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n"
                for n in range(6)
            ),
            "repeats itself through aliases",
        ),
    ],
)
def test_a_text_that_is_no_catalog_is_refused_without_harm(
    text: str, expected: str
) -> None:
    """Broken, hostile and huge files are faults, never exceptions of another kind."""
    assert any(expected in fault for fault in faults(text))


def test_no_sources_are_no_catalog() -> None:
    """An empty folder offers nothing, and says so."""
    with pytest.raises(CatalogError, match="the catalog offers nothing"):
        parse_catalog([])


def test_one_mistake_is_reported_once() -> None:
    """What a malformed entry would have named is not blamed as well."""
    told = faults(
        """\
        classes:
          - {name: cpu, cpu: 1, memory: 1GB}
        runtimes:
          - {name: env, accelerators: [cpu], driver_refs: {native: env}}
        profiles:
          - {name: lab, classes: [cpu], runtimes: [env]}
        """
    )
    assert len(told) == 1
    told = faults(with_part(runtime="runtimes:\n  - {name: env, accelerators: cpu}\n"))
    assert len(told) == 1


def test_no_message_repeats_a_ref() -> None:
    """Faults are shown to whoever checks a file; refs are the operator's."""
    told = faults(
        with_part(
            runtime="""\
runtimes:
  - {name: env, accelerators: [mps], driver_refs: {docker: secret-a, native: s/b},
     ref: [secret-c], container_ref: {x: secret-d}}
"""
        )
    )
    assert told
    assert not any("secret" in fault or "s/b" in fault for fault in told)


def test_one_misspelt_name_is_one_fault() -> None:
    """Neither the class that goes unserved nor the right runtime is blamed as well."""
    text = """\
classes:
  - {name: small, cpu: 1, memory: 1G}
runtimes:
  - {name: python, accelerators: [cpu], driver_refs: {native: env}}
profiles:
  - {name: lab, classes: [small], runtimes: [pyton]}
"""
    with pytest.raises(CatalogError) as caught:
        parse_catalog([Source("catalog.yaml", text)])
    (fault,) = caught.value.faults
    assert (fault.line, fault.remedy) == (6, "Did you mean 'python'?")
