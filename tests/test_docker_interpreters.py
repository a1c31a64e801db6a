"""Virtual environments that are mounted into a container: which get the base's interpreter, and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_paranoia.environments.base import Mount
from pytest_paranoia.environments.docker.interpreters import replaced
from pytest_paranoia.workspaces.toolchain import base_interpreter

INSIDE = "/usr/local/bin/python3.11"


def environment(folder: Path, python: Path) -> Mount:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\nrelocatable = true\n")
    (folder / "bin/python").symlink_to(python)
    (folder / "bin/python3").symlink_to("python")
    (folder / "bin/agent").write_text("#!/bin/sh\n")
    (folder / "bin/agent").chmod(0o755)
    return Mount(folder, "/opt/agents/agent")


def test_an_environment_of_this_interpreter_gets_the_one_of_the_base(tmp_path: Path) -> None:
    mount = environment(tmp_path / "env", base_interpreter())
    for _ in range(2):  # the daemon may be asked again
        programs, config = replaced(mount, INSIDE, tmp_path / "made")
    assert (programs.target, config.target) == ("/opt/agents/agent/bin", "/opt/agents/agent/pyvenv.cfg")
    assert str((programs.source / "python").readlink()) == INSIDE
    assert str((programs.source / "python3").readlink()) == "python"
    assert (programs.source / "agent").stat().st_mode & 0o777 == 0o755
    assert config.source.read_text() == "home = /usr/local/bin\nrelocatable = true\n"
    # What is installed is left as it was.
    assert (tmp_path / "env/bin/python").readlink() == base_interpreter()


@pytest.mark.parametrize("what", ["same", "other", "none"])
def test_anything_else_is_mounted_as_it_is(tmp_path: Path, what: str) -> None:
    """The base has this very interpreter; the environment brings another one along; it is no environment."""
    other = tmp_path / "other/python"
    other.parent.mkdir()
    other.touch()
    mount = environment(tmp_path / "env", other if what == "other" else base_interpreter())
    if what == "none":
        (tmp_path / "env/pyvenv.cfg").unlink()
    python = str(base_interpreter()) if what == "same" else INSIDE
    assert list(replaced(mount, python, tmp_path / "made")) == []
    assert not (tmp_path / "made").exists()
