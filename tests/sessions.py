"""Running the plugin as a user does, and reading what it left on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from small_items import ItemFolder


class Session:
    """One finished ``pytest`` invocation in its own folder."""

    def __init__(
        self,
        pytester: pytest.Pytester,
        items: ItemFolder | None,
        *arguments: str,
        active: bool = True,
        seconds: float = 120,
    ) -> None:
        switch = ["--paranoia"] if active else []
        chosen = [f"--paranoia-items={items.folder}"] if items is not None else []
        # The tests' own -n must not reach a session under test through the environment.
        # Hypothesis' plugin imports all of Hypothesis at the end of every process: half a second each.
        quick = ["-p", "no:hypothesispytest"]
        self.result = pytester.runpytest_subprocess(*quick, *switch, *chosen, *arguments, timeout=seconds)
        self.folder = pytester.path

    @property
    def code(self) -> int:
        return int(self.result.ret)

    @property
    def text(self) -> str:
        return self.result.stdout.str() + self.result.stderr.str()

    @property
    def runs(self) -> list[Path]:
        base = self.folder / "reports"
        return sorted(path for path in base.iterdir() if path.is_dir()) if base.is_dir() else []

    @property
    def run(self) -> Path:
        (run,) = self.runs
        return run

    def records(self, run: Path | None = None) -> dict[str, dict[str, Any]]:
        found = {}
        for path in sorted((run or self.run).glob("trials/*/record.json")):
            record = json.loads(path.read_text())
            found[record["trial"]] = record
        return found

    def summary(self, run: Path | None = None) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(((run or self.run) / "summary.json").read_text())
        return content

    def cases(self, path: str = "out.xml") -> dict[str, ElementTree.Element]:
        root = ElementTree.parse(self.folder / path).getroot()
        return {f"{case.get('classname')}::{case.get('name')}": case for case in root.iter("testcase")}


def ids(session: Session) -> list[str]:
    """The node ids that ``--collect-only -q`` printed."""
    return [line for line in session.result.outlines if ".toml::" in line]
