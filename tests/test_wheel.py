"""The installed wheel: the same items under the same names as in a checkout, run from an empty folder."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import filelock
import pytest
from packaging.requirements import Requirement

from pytest_paranoia.workspaces.cache import cache_root

CHECKOUT = Path(__file__).resolve().parent.parent
CONTENT = ("tasks", "oracles", "judge")
Entries = dict[str, tuple[bytes, int]]


@dataclass(frozen=True)
class Place:
    """A Python that has the package, a folder to start it in, and one for what it writes."""

    python: Path
    folder: Path
    output: Path
    bytecode: Path

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pytest there, in an environment that leads nowhere else."""
        elsewhere = []
        if self.output != self.folder:
            elsewhere = [f"--paranoia-reports={self.output / 'reports'}", "-o", f"cache_dir={self.output / 'cache'}"]
        return self.run("-m", "pytest", "--paranoia", "-p", "no:hypothesispytest", *elsewhere, *arguments)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run this Python there."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        env |= {"PYTHONPYCACHEPREFIX": str(self.bytecode)}
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def ids(self, *arguments: str) -> list[str]:
        """The node ids that are collected."""
        done = self.pytest("--collect-only", "-q", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if "::" in line]

    def cases(self, *arguments: str) -> dict[tuple[str, str], str]:
        """Run trials; return the outcome by JUnit's class name and name."""
        path = self.output / "out.xml"
        done = self.pytest(f"--junitxml={path}", *arguments)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        found = {}
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
            assert outcome != "error", done.stdout
            found[case.get("classname", ""), case.get("name", "")] = outcome
        return found


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of a test session share: what is in there is made once."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "paranoia-wheel"
    folder.mkdir(exist_ok=True)
    return folder


def made(shared: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Return a shared folder, filled by *make* where no other worker has."""
    target = shared / name
    with filelock.FileLock(shared / "lock"):
        if not target.is_dir():
            make(shared / "making")
            (shared / "making").rename(target)
    return target


@pytest.fixture(scope="session")
def export(shared: Path) -> Path:
    """A clean checkout: the files that git tracks or would track, as they are now."""
    return made(shared, "checkout", _export)


def _export(target: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a git checkout: {done.stderr.decode().strip()}")
    for name in sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name}):
        if os.path.lexists(CHECKOUT / name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, target / name, follow_symlinks=False)


def succeed(command: Sequence[str | Path], folder: Path) -> None:
    # Without a network, and without the settings of whoever runs this.
    env = {**os.environ, "UV_OFFLINE": "1", "UV_NO_CONFIG": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def wheel(shared: Path, export: Path) -> Path:
    """The wheel that is built from the checkout."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", export, "--outdir"]
    (path,) = made(shared, "wheel", lambda target: succeed([*command, target], shared)).glob("*.whl")
    return path


@pytest.fixture(scope="session")
def sdist(shared: Path, export: Path) -> Path:
    """The sdist; beside it lies the wheel that is built from it."""
    command = [sys.executable, "-m", "build", "--no-isolation", export, "--outdir"]
    (path,) = made(shared, "sdist", lambda target: succeed([*command, target], shared)).glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def venv(shared: Path, wheel: Path) -> Path:
    """A new virtual environment with the wheel, this environment's other packages and nothing of the checkout."""

    def make(target: Path) -> None:
        uv = [sys.executable, "-m", "uv"]
        succeed([*uv, "venv", "--relocatable", "--python", sys.executable, target], shared)
        succeed([*uv, "pip", "install", "--no-deps", "--python", target / "bin" / "python", wheel], shared)
        site = target / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            ours = "pytest_paranoia" in entry.name or entry.suffix == ".pth" or entry.name == "__pycache__"
            if not ours and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
        # Preparing a repository starts this program.
        (target / "bin" / "uv").symlink_to(Path(sys.executable).with_name("uv"))

    return made(shared, "venv", make)


@pytest.fixture
def installed(shared: Path, venv: Path, tmp_path: Path) -> Place:
    """The wheel, and an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return Place(venv / "bin" / "python", folder, folder, shared / "bytecode")


@pytest.fixture
def checkout(shared: Path, export: Path, tmp_path: Path) -> Place:
    """The same items where a developer has them: the folder is first on the path of ``python -m pytest``."""
    return Place(Path(sys.executable), export, tmp_path, shared / "bytecode")


def entries(wheel: Path) -> Entries:
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: (archive.read(info), info.external_attr >> 16) for info in archive.infolist()}


def files_of(folder: Path) -> dict[str, Path]:
    """Files by relative name; bytecode apart, which an oracle's interpreter leaves beside our code."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir()}
    return {name: path for name, path in found.items() if "__pycache__" not in path.parts}


def is_executable(mode: int) -> bool:
    return bool(mode & stat.S_IXUSR)


def test_the_wheel_holds_the_package_and_its_items(export: Path, wheel: Path) -> None:
    found = entries(wheel)
    (info,) = {name.partition("/")[0] for name in found if ".dist-info/" in name}
    expected = {f"pytest_paranoia/{name}": path for name, path in files_of(export / "pytest_paranoia").items()}
    for part in CONTENT:
        expected |= {f"pytest_paranoia/_corpus/{part}/{name}": path for name, path in files_of(export / part).items()}
    expected |= {f"pytest_paranoia/_docs/{name}": path for name, path in files_of(export / "docs").items()}
    assert {name for name in found if not name.startswith(info)} == set(expected)
    assert [name for name, path in expected.items() if found[name][0] != path.read_bytes()] == []
    changed = [
        name for name, path in expected.items() if is_executable(found[name][1]) != is_executable(path.stat().st_mode)
    ]
    assert changed == []
    assert "pytest_paranoia/py.typed" in found
    assert f"{info}/licenses/LICENSE" in found


def test_the_metadata(export: Path, wheel: Path) -> None:
    project = tomllib.loads((export / "pyproject.toml").read_text())["project"]
    found = {
        name.partition("/")[2]: data.decode() for name, (data, _) in entries(wheel).items() if ".dist-info" in name
    }
    metadata = email.message_from_string(found["METADATA"])
    assert metadata["Name"] == "pytest-paranoia"
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata["License-Expression"] == "MIT"
    needed = [*project["dependencies"]]
    for extra, lines in project.get("optional-dependencies", {}).items():
        needed += [f"{line}; extra == '{extra}'" for line in lines]
    required = {str(Requirement(line)) for line in metadata.get_all("Requires-Dist", [])}
    assert required == {str(Requirement(line)) for line in needed}
    assert "Framework :: Pytest" in metadata.get_all("Classifier", [])
    assert (export / "README.md").read_text().strip() in metadata.get_payload().strip()
    assert "Root-Is-Purelib: true" in found["WHEEL"]
    points: dict[str, dict[str, str]] = {}
    for line in found["entry_points.txt"].splitlines():
        if line.startswith("["):
            group = points.setdefault(line.strip("[]"), {})
        elif line:
            name, _, value = line.partition(" = ")
            group[name] = value
    assert points == {"console_scripts": project["scripts"], **project["entry-points"]}


def test_the_sdist_builds_the_same_wheel(export: Path, wheel: Path, sdist: Path) -> None:
    (again,) = sdist.parent.glob("*.whl")
    assert entries(again) == entries(wheel)
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()}
    assert names - {"PKG-INFO"} == set(files_of(export))


def test_nothing_of_the_checkout_is_importable(installed: Place, export: Path) -> None:
    code = "import sys, tests" if (CHECKOUT / "tests/__init__.py").exists() else "import sys, small_items"
    assert "ModuleNotFoundError" in installed.run("-c", code).stderr
    done = installed.run("-c", "import sys, pytest_paranoia; print(pytest_paranoia.__file__, *sys.path, sep='\\n')")
    module, *path = done.stdout.splitlines()
    assert Path(module).is_relative_to(installed.python.parent.parent)
    assert [folder for folder in path if Path(folder or installed.folder).resolve() in (CHECKOUT, export)] == []


NAMED = re.compile(r"paranoia docs ([\w-]+)")
PAGE = re.compile(r"\bdocs/([\w-]+)\.md\b")


def messages(package: Path) -> list[str]:
    """The texts of the package that may reach a user: all literals but docstrings, those of JSON schemas, templates."""
    found: list[str] = []
    files = [path for path in package.rglob("*") if not {"_corpus", "_docs"} & set(path.parts)]
    for path in files:
        if path.suffix in (".json", ".j2", ".js", ".html"):
            found.append(path.read_text(encoding="utf-8"))
        if path.suffix == ".py":
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            texts = {id(node): node.value for node in nodes if isinstance(node, ast.Constant)}
            docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            found += [text for key, text in texts.items() if isinstance(text, str) and key not in docstrings]
    return found


def test_a_page_that_a_message_names_can_be_read_where_the_wheel_is_installed(installed: Place) -> None:
    folder = Path(installed.run("-c", "import pytest_paranoia as p; print(p.__path__[0])").stdout.strip())
    named = {name for text in messages(folder) for name in NAMED.findall(text)}
    assert {"writing-pairs", "writing-scenarios", "agents", "harbor", "security", "statistics"} <= named
    # A path of the repository leads nowhere there.
    assert [text for text in messages(folder) if PAGE.search(text)] == []
    command = ["-m", "pytest_paranoia.cli", "docs"]
    listed = installed.run(*command)
    pages = {line.split()[0] for line in listed.stdout.splitlines()}
    assert named <= pages, listed.stdout + listed.stderr
    assert "interventions.in" not in pages
    for name in sorted(named):
        shown = installed.run(*command, name)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout == (CHECKOUT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert installed.run(*command, "docs/records.md#recordjson").stdout.startswith("# The record format")
    missing = installed.run(*command, "writing-pears")
    assert missing.returncode == 2
    assert "no page 'writing-pears'; did you mean writing-pairs? there: agents, " in missing.stderr


def test_an_error_of_the_installed_plugin_names_a_page_that_is_there(installed: Place) -> None:
    (installed.folder / "mine").mkdir()
    done = installed.pytest("--paranoia-items=mine")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    (name,) = NAMED.findall(done.stderr)
    assert installed.run("-m", "pytest_paranoia.cli", "docs", name).stdout.startswith("# Write your own task pair")


def executables(folder: Path) -> set[str]:
    return {name for name, path in files_of(folder).items() if is_executable(path.lstat().st_mode)}


def test_what_is_executable_stays_so_when_installed(installed: Place, export: Path) -> None:
    where = installed.run("-c", "from pytest_paranoia import corpus; print(corpus.content_root())").stdout.strip()
    for part in CONTENT:
        assert executables(Path(where) / part) == executables(export / part)
        assert files_of(Path(where) / part).keys() == files_of(export / part).keys()


def test_the_same_node_ids(installed: Place, checkout: Place) -> None:
    ids = installed.ids()
    assert ids == checkout.ids()
    assert len(ids) > 50
    assert list(installed.folder.glob("reports")) == []
    assert installed.ids(ids[3]) == [ids[3]]
    assert installed.ids(*reversed(ids[-2:])) == list(reversed(ids[-2:]))
    item = ids[0].partition("::")[0]
    of_item = [nodeid for nodeid in ids if nodeid.startswith(item)]
    assert installed.ids(item) == of_item
    assert installed.ids(str(Path(item).parent)) == of_item
    repository = f"{Path(item).parent.parent}/"
    assert installed.ids(repository) == [nodeid for nodeid in ids if nodeid.startswith(repository)]


def pick(ids: Sequence[str]) -> tuple[str, str]:
    """One task pair and one scenario, by the name of their folder."""
    # One of those that take a second: others wait for clocks.
    pair = next(nodeid for nodeid in ids if "/humanize/" in nodeid and "/pair.toml::" in nodeid)
    scenario = next(nodeid for nodeid in ids if "/scenario.toml::" in nodeid)
    return Path(pair.partition("::")[0]).parent.name, Path(scenario.partition("::")[0]).parent.name


def test_the_same_run(installed: Place, checkout: Place) -> None:
    pair, scenario = pick(installed.ids())
    chosen = ["--model", "minimal,paranoid", "-k", f"{pair} or {scenario}"]
    expected = checkout.cases(*chosen)
    prepared = sorted(path.name for path in cache_root().glob("*/*") if path.parent.name not in ("locks", "staging"))
    assert installed.cases(*chosen) == expected
    # Found again, not made again: what the wheel holds has the very same hashes, modes included.
    assert prepared == sorted(
        path.name for path in cache_root().glob("*/*") if path.parent.name not in ("locks", "staging")
    )
    assert sorted(expected.values()) == ["failure", *["passed"] * 5]
    ((damaged, name),) = [key for key, outcome in expected.items() if outcome == "failure"]
    assert damaged.startswith("tasks.accusations.")
    (again,) = installed.ids("--lf", *chosen)
    assert again.endswith(f"/{scenario}/scenario.toml::{name}")
    assert installed.cases("--lf") == {(damaged, name): "failure"}
    assert sorted(path.name for path in installed.folder.iterdir()) == [".pytest_cache", "out.xml", "reports"]
