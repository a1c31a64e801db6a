"""What an installer would have recorded about a project, read from its source and laid into an environment."""

from __future__ import annotations

import csv
import email.parser
import io
import os
import re
import tomllib
from collections.abc import Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_paranoia.workspaces.importing import normalised

# Becomes part of file names.
_PLAIN = re.compile(r"\w[\w.+!-]*")

# uv's own launcher text: finds the interpreter beside itself, wherever the environment is mounted.
_SCRIPT = """\
#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@"
' '''
# -*- coding: utf-8 -*-
import sys
from {module} import {first}
if __name__ == "__main__":
    sys.exit({call}())
"""


@dataclass(frozen=True)
class ProjectMetadata:
    """Name, version, METADATA text and entry points of the project in a source tree."""

    name: str
    version: str
    metadata: str
    entry_points: dict[str, dict[str, str]]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def read_metadata(tree: Path) -> ProjectMetadata | None:
    """Read the metadata of an unstripped source tree: PKG-INFO where there is one, else static values of pyproject."""
    pyproject = _toml(tree / "pyproject.toml")
    project, poetry = _table(pyproject, "project"), _table(pyproject, "tool", "poetry")
    if (tree / "PKG-INFO").is_file():
        text = (tree / "PKG-INFO").read_text(encoding="utf-8", errors="replace")
        headers = email.parser.Parser().parsestr(text, headersonly=True)
        name, version = headers.get("Name"), headers.get("Version")
    else:
        name, version = (project.get(key) or poetry.get(key) for key in ("name", "version"))
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        if isinstance(summary := project.get("description") or poetry.get("description"), str):
            text += f"Summary: {' '.join(summary.split())}\n"
    if not (
        isinstance(name, str) and isinstance(version, str) and _PLAIN.fullmatch(name) and _PLAIN.fullmatch(version)
    ):
        return None
    return ProjectMetadata(name, version, text, _entry_points(tree, pyproject))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # upstream's matter: the metadata then comes from elsewhere or is not there


def _table(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        inner = data.get(key)
        data = inner if isinstance(inner, dict) else {}
    return data


def _entry_points(tree: Path, pyproject: dict[str, Any]) -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, Any]] = {}
    for generated in sorted(tree.glob("*.egg-info/entry_points.txt")) + sorted(
        tree.glob("*/*.egg-info/entry_points.txt")
    ):
        groups |= _ini(generated.read_text(encoding="utf-8", errors="replace"))
    for keys in (("project",), ("tool", "flit", "metadata"), ("tool", "poetry")):
        table = _table(pyproject, *keys)
        named = {"console_scripts": _table(table, "scripts"), "gui_scripts": _table(table, "gui-scripts")}
        named |= _table(table, "plugins") | _table(table, "entry-points")
        groups |= {group: entries for group, entries in named.items() if entries}
    groups |= {"console_scripts": scripts} if (scripts := _table(pyproject, "tool", "flit", "scripts")) else {}
    return {
        group: {name: value for name, value in sorted(entries.items()) if isinstance(value, str)}
        for group, entries in sorted(groups.items())
        if isinstance(entries, dict)
    }


def _ini(text: str) -> dict[str, dict[str, Any]]:
    parser = ConfigParser(delimiters=("=",), interpolation=None, default_section="\0")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(text)
    except ConfigError:
        return {}
    return {section: dict(parser[section]) for section in parser.sections()}


def write_dist_info(env: Path, site_packages: Path, project: ProjectMetadata, packages: Sequence[str]) -> None:
    """Record *project* in an environment as if it were installed; its code stays on PYTHONPATH."""
    folder = site_packages / f"{normalised(project.name).replace('-', '_')}-{project.version}.dist-info"
    folder.mkdir()
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project.entry_points.items()
    )
    files = {
        "METADATA": project.metadata,
        "INSTALLER": "uv\n",
        "top_level.txt": "".join(f"{name}\n" for name in packages),
        "entry_points.txt": "\n".join(sections),
    }
    if not project.entry_points:
        del files["entry_points.txt"]
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    recorded = [f"{folder.name}/{name}" for name in (*files, "RECORD")]
    recorded += _plugin_markers(site_packages, project.entry_points.get("pytest11", {}))
    rows = io.StringIO()
    csv.writer(rows, lineterminator="\n").writerows([name, "", ""] for name in recorded)
    (folder / "RECORD").write_text(rows.getvalue(), encoding="utf-8")
    for name, value in project.entry_points.get("console_scripts", {}).items():
        if _PLAIN.fullmatch(name):
            _write_script(env / "bin" / name, value)


def _plugin_markers(site_packages: Path, plugins: dict[str, str]) -> list[str]:
    """Return the recorded files that make pytest rewrite the assertions of a plugin that the repository is.

    pytest takes the packages to rewrite from the files that a distribution has recorded, and importlib.metadata
    hides recorded files that do not exist. PYTHONPATH comes first, so what lies here is never imported.
    """
    markers = []
    for top in sorted({value.split(":")[0].strip().split(".")[0] for value in plugins.values()}):
        if top.isidentifier() and not (site_packages / top).exists():
            (site_packages / top).mkdir()
            (site_packages / top / "__init__.py").write_text(
                f'raise ImportError("the code of {top} is in the workspace: put it on PYTHONPATH")\n'
            )
            markers.append(f"{top}/__init__.py")
    return markers


def _write_script(path: Path, value: str) -> None:
    module, _, attribute = value.split("[")[0].strip().partition(":")
    names = [part for name in (module, attribute) for part in name.strip().split(".")]
    # A launcher of the interpreter or of the lock (python, pytest) is never replaced.
    if os.path.lexists(path) or not all(map(str.isidentifier, names)):
        return
    call = attribute.strip()
    path.write_text(_SCRIPT.format(module=module.strip(), first=call.split(".")[0], call=call), encoding="utf-8")
    path.chmod(0o755)
