"""Images: what their names and layers depend on, one build whatever the number of builders, and ``paranoia images``."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from docker_lab import images_removed
from hypothesis import given
from hypothesis import strategies as st
from small_items import ItemFolder

from pytest_paranoia.commands.images import _ingredients, _newest
from pytest_paranoia.environments.base import Ingredients
from pytest_paranoia.environments.docker import images, layer, machine, slots
from pytest_paranoia.environments.docker.bases import Base, Facts
from pytest_paranoia.environments.docker.provider import PROVIDER
from pytest_paranoia.environments.docker.settings import LABEL, user
from pytest_paranoia.errors import InfrastructureError
from requirements import require

FACTS = Facts("/usr/local/bin/python3.11", "3.11", "cpython", "a70d0d0a", "glibc 2.36", [])
BASE = Base("python:3.11-bookworm", "sha256:" + "ab" * 32, "sha256:" + "cd" * 32, FACTS)


@pytest.fixture
def ingredients(tmp_path: Path) -> Ingredients:
    """A prepared repository and its environment, as far as a layer looks at them."""
    env, tree = tmp_path / "tiny-0123456789abcdef", tmp_path / "tree"
    (env / "bin").mkdir(parents=True)
    (env / "lib/python3.11/site-packages/dep").mkdir(parents=True)
    (env / "lib/python3.11/site-packages/dep/__init__.py").write_text("value = 1\n")
    (env / "bin/python").symlink_to("/somewhere/else/bin/python3.11")
    (env / "bin/python3").symlink_to("python")
    (env / "bin/tool").write_text("#!/bin/sh\n")
    (env / "bin/tool").chmod(0o750)
    (env / "pyvenv.cfg").write_text("home = /somewhere/else/bin\nrelocatable = true\n")
    (tree / ".git").mkdir(parents=True)
    (tree / "README.md").write_text("# tiny\n")
    return Ingredients("tiny", env, "/opt/env", tree, "f" * 40)


def members(ingredients: Ingredients | None) -> dict[str, tarfile.TarInfo]:
    stream = BytesIO()
    layer.write(ingredients, FACTS.python, stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        return {member.name: member for member in tar}


# -- names and recipes ---------------------------------------------------------------------------------------------


def test_the_name_changes_with_all_that_goes_in(ingredients: Ingredients, tmp_path: Path) -> None:
    others = [
        images.tag_of(replace(BASE, id="sha256:" + "ef" * 32), ingredients),
        images.tag_of(BASE, replace(ingredients, commit="e" * 40)),
        images.tag_of(BASE, replace(ingredients, python_env=tmp_path / "tiny-fedcba9876543210")),
        images.tag_of(BASE, replace(ingredients, target="/opt/other")),
        images.tag_of(BASE, None),
    ]
    tag = images.tag_of(BASE, ingredients)
    assert len({tag, *others}) == 6
    assert tag == images.tag_of(BASE, ingredients)
    assert tag.startswith("paranoia/trial-tiny:")


@given(st.text(min_size=1, max_size=300))
def test_every_name_of_a_folder_makes_a_name_of_an_image(name: str) -> None:
    tag = images.tag_of(BASE, Ingredients(name, Path("/env"), "/opt/env"))
    assert re.fullmatch(r"paranoia/trial-[a-z0-9]+(-[a-z0-9]+)*:[0-9a-f]{24}", tag)
    assert len(tag) < 150


@given(st.text(min_size=1, max_size=30))
def test_no_name_breaks_a_recipe(name: str) -> None:
    """A label stays one word of one line, and nothing in it is a variable."""
    lines = images.recipe(BASE, Ingredients(name, Path("/env"), "/opt/env")).split("\n")
    assert [line.split(" ")[0] for line in lines] == ["FROM", "LABEL", "ADD", "USER", "ENTRYPOINT", ""]
    value = re.search(rf'{re.escape(LABEL)}\.name="((?:[^"\\$]|\\.)*)"', lines[1])
    assert value is not None
    assert re.sub(r"\\(.)", r"\1", value[1]) == " ".join(name.split())


def test_the_recipe_pins_its_base(ingredients: Ingredients) -> None:
    text = images.recipe(BASE, ingredients)
    assert text.splitlines()[0] == "FROM paranoia/pinned:" + ("ab" * 32)[:24]
    assert f'{LABEL}.base-digest="sha256:{"cd" * 32}"' in text
    assert f'{LABEL}.commit="{"f" * 40}"' in text
    assert f"USER {user()[0]}:{user()[1]}" in text
    assert "RUN" not in text  # nothing is fetched when an image is built


# -- the layer -----------------------------------------------------------------------------------------------------


def test_the_layer_holds_the_environment_with_the_bases_python(ingredients: Ingredients) -> None:
    found = members(ingredients)
    assert found["opt/env/bin/python"].linkname == FACTS.python
    assert found["opt/env/bin/python3"].linkname == "python"
    assert found["opt/env/bin/tool"].mode == 0o755
    assert found["opt/env/lib/python3.11/site-packages/dep/__init__.py"].mode == 0o644
    assert found["opt/repository"].mode == 0o700
    assert "opt/repository/README.md" in found
    assert {(member.uid, member.gid, member.uname) for member in found.values()} == {(0, 0, "")}
    for name in ("workspace", "home/agent", "run/init", "opt/agents", "var/lib/agent"):
        assert found[name].isdir()
    assert not any(name.startswith("opt/env") for name in members(None))


def test_the_layer_is_the_same_every_time(ingredients: Ingredients) -> None:
    first, second = BytesIO(), BytesIO()
    layer.write(ingredients, FACTS.python, first)
    layer.write(ingredients, FACTS.python, second)
    assert first.getvalue() == second.getvalue()


def test_the_layer_knows_the_user(ingredients: Ingredients) -> None:
    stream = BytesIO()
    layer.write(ingredients, FACTS.python, stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        passwd = tar.extractfile("etc/passwd")
        config = tar.extractfile("opt/env/pyvenv.cfg")
        assert passwd is not None
        assert config is not None
        assert f"agent:x:{user()[0]}:{user()[1]}::/home/agent:/bin/sh" in passwd.read().decode().splitlines()
        assert config.read().decode() == "home = /usr/local/bin\nrelocatable = true\n"


# -- building ------------------------------------------------------------------------------------------------------

BUILDER = """
import sys
from pathlib import Path
from pytest_paranoia.commands.images import _ingredients, _newest
from pytest_paranoia.environments.base import Ingredients
from pytest_paranoia.environments.docker import images
from pytest_paranoia.environments.docker.provider import PROVIDER
env, tree, log = map(Path, sys.argv[1:])
real = images.send
def send(*arguments):
    with log.open("a") as stream:
        stream.write("built\\n")
    return real(*arguments)
images.send = send
print(images.ensure(PROVIDER.base(), Ingredients("once", env, "/opt/env", tree, "f" * 40)).id)
"""


def test_many_processes_build_an_image_once(ingredients: Ingredients, tmp_path: Path) -> None:
    require("docker")
    assert ingredients.tree is not None
    log = tmp_path / "log"
    argv = [sys.executable, "-c", BUILDER, str(ingredients.python_env), str(ingredients.tree), str(log)]
    with images_removed("once"):
        started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        ids = {process.communicate(timeout=300)[0].strip() for process in started}
        assert [process.returncode for process in started] == [0] * 4
        assert log.read_text() == "built\n"
        assert len(ids) == 1
        assert ids.pop().startswith("sha256:")


def test_a_build_that_fails_says_which_and_why(ingredients: Ingredients, monkeypatch: pytest.MonkeyPatch) -> None:
    require("docker")
    monkeypatch.setattr(images, "recipe", lambda *_: "FROM paranoia/pinned:no-such-tag\nADD layer.tar /\n")
    with pytest.raises(InfrastructureError, match=r"the image paranoia/trial-tiny:\w+ cannot be built: ") as caught:
        images.ensure(PROVIDER.base(), replace(ingredients, commit="d" * 40))
    assert caught.value.reason == "environment-image"


# -- the command ---------------------------------------------------------------------------------------------------


def paranoia(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_paranoia.cli", "images", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_build_and_list(items: ItemFolder) -> None:
    require("docker")
    # A name of its own: other tests tidy up the images of the usual one.
    name = f"only-{secrets.token_hex(4)}"
    items.repository(name)
    with images_removed(name):
        first = paranoia("build", name, "--items", str(items.folder))
        assert f"{name}: built in " in first
        tag = next(word for word in first.replace(",", " ").split() if word.startswith(f"paranoia/trial-{name}:"))
        manifest = items.folder / "tasks/pairs" / name / "repository.toml"
        assert tag == images.tag_of(PROVIDER.base(), _ingredients(manifest))
        assert f"{name}: was built" in paranoia("build", name, "--items", str(items.folder))
        assert "FROM paranoia/pinned:" in paranoia("build", "--recipe", name, "--items", str(items.folder))
        assert f"{tag}: " in paranoia("list")
        unknown = paranoia("build", "none", "--items", str(items.folder), code=2)
        assert "no repository none below" in unknown
        assert f"there: plain, {name}" in unknown


def test_only_the_newest_image_of_a_repository_on_this_base_stays() -> None:
    def image(name: str, base: str, created: int) -> dict[str, object]:
        return {"Id": f"{name}-{created}", "Created": created, "Labels": {f"{LABEL}.name": name, f"{LABEL}.base": base}}

    found = [
        image("a", "now", 1),
        image("a", "now", 3),
        image("a", "old", 5),
        image("b", "old", 1),
        image("c", "now", 2),
    ]
    assert {one["Id"] for one in _newest(found, "now")} == {"a-3", "c-2"}


# -- a base of this machine ----------------------------------------------------------------------------------------


def test_packages_bring_what_they_depend_on() -> None:
    installed = {
        "git": {"Depends": "libc6 (>= 2.34), perl:any, editor | nano"},
        "perl": {"Pre-Depends": "dpkg (>= 1.17)", "Depends": "perl-base (= 5.36)"},
        "perl-base": {},
        "nano": {"Provides": "editor"},
        "libc6": {"Depends": "libgcc-s1"},
        "libgcc-s1": {"Depends": "libc6"},
        "dpkg": {},
        "unrelated": {"Depends": "git"},
    }
    assert machine.closure(installed, ["git"], ["unrelated-too"]) == {
        *("git", "perl", "perl-base", "nano", "libc6", "libgcc-s1", "dpkg"),
    }
    with pytest.raises(InfrastructureError, match="lacks the packages hurd"):
        machine.closure(installed, ["hurd"], [])


def test_a_machine_without_dpkg_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    with pytest.raises(InfrastructureError, match="--paranoia-docker-base"):
        machine._installed()


# -- turns ---------------------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pytest_paranoia.environments.docker import slots
with slots.starting(int(sys.argv[1])):
    print(time.monotonic(), flush=True)
    time.sleep(float(sys.argv[2]))
    print(time.monotonic(), flush=True)
"""


def test_no_more_than_so_many_start_at_once(tmp_path: Path) -> None:
    env = {**os.environ, "PARANOIA_CACHE": str(tmp_path)}
    argv = [sys.executable, "-c", HOLDER, "2", "0.4"]
    started = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    spans = [tuple(map(float, process.communicate(timeout=120)[0].split())) for process in started]
    moments = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    at_once, most = 0, 0
    for _, change in moments:
        at_once += change
        most = max(most, at_once)
    assert most <= 2


def test_a_killed_holder_gives_its_turn_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, "1", "600"], stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        monkeypatch.setattr(slots, "WAIT_SECONDS", 0.3)
        with pytest.raises(InfrastructureError, match="no turn to start a container"), slots.starting(1):
            pass
        holder.kill()
    begin = time.monotonic()
    with slots.starting(1):
        assert time.monotonic() - begin < 5
