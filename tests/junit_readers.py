"""JUnit as CI servers read it: each reader takes from the file what that server takes, and nothing else.

Written from the servers' documentation and observed behaviour, not from their code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

_TEXT = frozenset({"system-out", "system-err"})
# Jenkins' xunit2 schema (xunit-plugin, junit-10.xsd) in the strictest of its versions:
# element -> (allowed children, required attributes, other attributes).
_SCHEMA: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]] = {
    "testsuites": (frozenset({"testsuite"}), frozenset(), frozenset({"name", "time", "tests", "failures", "errors"})),
    "testsuite": (
        frozenset({"testsuite", "properties", "testcase"}) | _TEXT,
        frozenset({"name", "tests", "failures", "errors"}),
        frozenset({"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"}),
    ),
    "testcase": (
        frozenset({"skipped", "error", "failure"}) | _TEXT,
        frozenset({"name"}),
        frozenset({"time", "classname", "group"}),
    ),
    "properties": (frozenset({"property"}), frozenset(), frozenset()),
    "property": (frozenset(), frozenset({"name", "value"}), frozenset()),
    **dict.fromkeys(("skipped", "error", "failure"), (frozenset(), frozenset(), frozenset({"type", "message"}))),
    **dict.fromkeys(_TEXT, (frozenset(), frozenset(), frozenset())),
}
_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")
_MIXED = frozenset({"skipped", "error", "failure"}) | _TEXT


def schema_faults(element: ElementTree.Element) -> Iterator[str]:
    """What Jenkins' xunit2 schema forbids below *element*."""
    children, required, optional = _SCHEMA.get(element.tag, (frozenset(), frozenset(), frozenset()))
    if element.tag not in _SCHEMA:
        yield f"unknown element {element.tag}"
        return
    if missing := required - set(element.keys()):
        yield f"{element.tag} lacks {sorted(missing)}"
    if unknown := set(element.keys()) - required - optional:
        yield f"{element.tag} has {sorted(unknown)}"
    if element.tag in ("testsuites", "testsuite") and not _TIME.fullmatch(element.get("time", "")):
        yield f"{element.tag} time {element.get('time')!r}"
    if element.tag not in _MIXED and (element.text or "").strip():
        yield f"{element.tag} holds text"
    for child in element:
        if child.tag not in children:
            yield f"{child.tag} in {element.tag}"
        yield from schema_faults(child)


@dataclass
class GitLab:
    """GitLab: no properties; a case of the same suite, class and name as an earlier one is dropped."""

    cases: dict[tuple[str, str, str], tuple[str, str, str]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> GitLab:
        found = cls()
        for suite in ElementTree.parse(path).getroot().iter("testsuite"):
            for case in suite.findall("testcase"):
                key = (suite.get("name", ""), case.get("classname", ""), case.get("name", ""))
                status, text = "success", ""
                for tag, word in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
                    if (element := case.find(tag)) is not None:
                        status, text = word, element.text or ""
                        break
                out = case.findtext("system-out") or ""
                found.attachments += re.findall(r"\[\[ATTACHMENT\|(.+?)\]\]", out)
                if key in found.cases:
                    found.dropped.append(key[2])
                else:
                    found.cases[key] = (status, text, out)
        return found


def jenkins(path: Path) -> dict[str, dict[str, str]]:
    """Jenkins' JUnit plugin with "retain properties": properties by class and name."""
    return {
        f"{case.get('classname')}.{case.get('name')}": {
            str(one.get("name")): str(one.get("value")) for one in case.findall("properties/property")
        }
        for case in ElementTree.parse(path).getroot().iter("testcase")
    }


@dataclass(frozen=True)
class Annotation:
    """What mikepenz/action-junit-report makes of a case."""

    file: str
    line: int
    status: str
    title: str
    message: str


def action(path: Path) -> list[Annotation]:
    """GitHub's mikepenz/action-junit-report: file and line of a case, else the last part of its class and line 1."""
    found = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, classname = case.get("name", ""), case.get("classname", "")
        failure = case.find("failure")
        failure = case.find("error") if failure is None else failure
        status = "skipped" if case.find("skipped") is not None else "success" if failure is None else "failure"
        trace = "" if failure is None else (failure.text or "").strip()
        message = "" if failure is None else failure.get("message") or "\n".join(trace.split("\n")[:2])
        file = case.get("file") or classname.rpartition(".")[2]
        found.append(Annotation(file, int(case.get("line") or 1), status, f"{file}.{name}", (message or name).strip()))
    return found
