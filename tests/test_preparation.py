"""Preparation on real projects, on local ones of every source kind, and on what goes wrong."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_paranoia import cli
from pytest_paranoia.corpus import load
from pytest_paranoia.errors import SourceError
from pytest_paranoia.schema.manifest import Repository
from pytest_paranoia.workspaces import cache, importing, sources, toolchain
from pytest_paranoia.workspaces.prepare import (
    PreparedRepository,
    copy_tree,
    plain_env,
    prepare_repository,
    prepare_scenario,
    prepare_variant,
)

DATA = Path(__file__).parent / "data" / "preparation"
ZERO = "0" * 40
# Nothing of the user's configuration reaches past these.
NO_NETWORK = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_INDEX_URL": "http://127.0.0.1:9",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
    "PIP_RETRIES": "0",
    "PIP_NO_CACHE_DIR": "1",
    "UV_OFFLINE": "1",
}
PROJECT = {
    "pyproject.toml": """
        [project]
        name = "Sample.Project"
        version = "1.2.3"
        description = "A sample."
        scripts = { sample = "sample.cli:main" }
        entry-points.pytest11 = { sample = "sample.plugin" }
    """,
    "src/sample/__init__.py": "VALUE = 1\n",
    "src/sample/cli.py": "def main():\n    print('sample speaks')\n",
    "src/sample/plugin.py": "def check(value):\n    assert value == 1\n",
    "tests/test_value.py": "import sample\n\ndef test_value():\n    assert sample.VALUE == 1\n",
    ".gitignore": "*.mo\n/generated/\n",
    "generated/table.py": "TABLE = []\n",
    "data/crlf.txt": "one\r\ntwo\r\n",
    ".gitattributes": "*.txt text eol=lf\n",
}


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def prepared_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which ``paranoia prepare`` has prepared the real projects of tests/data."""
    folder = tmp_path_factory.mktemp("machine")
    done = paranoia("prepare", "--verbose", "--items", str(DATA), env={"PARANOIA_CACHE": str(folder)})
    assert done.returncode == 0, done.stderr
    return folder


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **extra}


def paranoia(*arguments: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pytest_paranoia.cli", *arguments]
    return subprocess.run(argv, env=environment(env), capture_output=True, text=True, timeout=300, check=False)


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(textwrap.dedent(text).lstrip("\n").encode())
    return folder


def git(tree: Path, *arguments: str) -> str:
    argv = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=True).stdout


def archive(folder: Path, files: Mapping[str, str], name: str = "sample_project", version: str = "1.2.3") -> str:
    """Write an sdist of *files* into *folder* and return its sha256."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.tar.gz"
    pkg_info = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: from PKG-INFO\n"}
    with tarfile.open(path, "w:gz") as tar:
        for inside, text in {**files, **pkg_info}.items():
            data = textwrap.dedent(text).lstrip("\n").encode()
            member = tarfile.TarInfo(f"{name}-{version}/{inside}")
            member.size, member.uid, member.mode = len(data), 12345, 0o666
            tar.addfile(member, io.BytesIO(data))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def manifest(source: Mapping[str, str], **changes: Any) -> Repository:
    fields = {
        "schema": 1,
        "commit": ZERO,
        "license": "MIT",
        "description": "A sample.",
        "pythonpath": ["src"],
        "packages": ["sample"],
        "test_command": "python -m pytest",
        "test_seconds": 1.0,
        "source": source,
    }
    return Repository.model_validate({**fields, **changes})


def pin(folder: Path, repository: Repository) -> Repository:
    """Return *repository* with the commit that preparation says is the right one, as an author would."""
    with pytest.raises(SourceError, match="not pinned yet") as caught:
        prepare_repository(folder, repository)
    commit = str(caught.value).split('commit = "')[1][:40]
    return repository.model_copy(update={"commit": commit})


def folder_repository(folder: Path, files: Mapping[str, str], **changes: Any) -> Repository:
    tree = lay(folder / "project", files)
    return manifest({"kind": "folder", "folder": "project", "sha256": cache.tree_digest(tree)}, **changes)


def sample(folder: Path, **changes: Any) -> PreparedRepository:
    repository = pin(folder, folder_repository(folder, PROJECT, **changes))
    return prepare_repository(folder, repository)


def history(tree: Path) -> list[str]:
    return git(tree, "log", "--all", "--format=%an|%ae|%at|%cn|%ct|%s").splitlines()


def objects(tree: Path) -> list[str]:
    return git(tree, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()


def in_env(env: Path, pythonpath: Path, *argv: str, cwd: Path) -> str:
    """Run a program of an environment that lies at another path than it was built at."""
    moved = cwd.parent / "opt-env"
    if not moved.exists():
        shutil.copytree(env, moved, symlinks=True)
    variables = {"PATH": f"{moved}/bin:/usr/bin:/bin", "PYTHONPATH": str(pythonpath), "HOME": str(cwd.parent)}
    done = subprocess.run(argv, cwd=cwd, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


# Real projects


@pytest.mark.parametrize("name", ["python-slugify", "tinydb"])
def test_a_real_project_passes_its_targeted_test_in_its_moved_environment(
    name: str, prepared_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARANOIA_CACHE", str(prepared_machine))
    folder = DATA / "tasks/pairs" / name
    repository = load(folder / "repository.toml", Repository, name)
    prepared = prepare_repository(folder, repository)
    work = tmp_path / "workspace"
    copy_tree(prepared.tree, work)
    assert prepared.commit == repository.commit == git(work, "rev-parse", "HEAD").strip()
    assert "passed" in in_env(prepared.python_env, work, *repository.test_command.split(), cwd=work)
    assert "passed" in in_env(prepared.python_env, work, "pytest", *repository.test_command.split()[3:], cwd=work)
    version = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
    assert in_env(prepared.python_env, work, "python", "-c", version, cwd=work) == repository.source.version
    assert git(work, "status", "--porcelain") == ""  # caches are excluded


def test_a_real_console_script_finds_the_workspace(
    prepared_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARANOIA_CACHE", str(prepared_machine))
    folder = DATA / "tasks/pairs/python-slugify"
    prepared = prepare_repository(folder, load(folder / "repository.toml", Repository, "slugify"))
    copy_tree(prepared.tree, tmp_path / "workspace")
    work = tmp_path / "workspace"
    assert in_env(prepared.python_env, work, "slugify", "Ein Käse", cwd=work) == "ein-kase"


def test_a_prepared_machine_works_without_network(prepared_machine: Path) -> None:
    done = paranoia("prepare", "--items", str(DATA), env={**NO_NETWORK, "PARANOIA_CACHE": str(prepared_machine)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("was prepared") == 2


def test_the_first_preparation_without_network_says_so(machine: Path) -> None:
    done = paranoia("prepare", "tinydb", "--items", str(DATA), env=NO_NETWORK)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "tinydb/repository.toml: source: tried to fetch the sdist of tinydb 4.9.0 with pip" in done.stderr
    assert "the first preparation needs the network, a machine that has prepared it works offline" in done.stderr
    assert not list((machine / "sources").iterdir())


def test_a_lock_that_cannot_be_fetched_says_so(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_NETWORK.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    (tmp_path / "lock.txt").write_text(f"nonesuch==1.0 --hash=sha256:{'0' * 64}\n")
    repository = pin(tmp_path, folder_repository(tmp_path, PROJECT, requirements="lock.txt"))
    with pytest.raises(SourceError, match=r"repository.toml: requirements: uv could not install lock.txt.*offline"):
        prepare_repository(tmp_path, repository)
    assert not list((machine / "envs").iterdir())


# sdists, without a network


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all the package index there is."""
    for name, value in {**NO_NETWORK, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "index"


def sdist(sha256: str, version: str = "1.2.3") -> dict[str, str]:
    return {"kind": "pypi", "name": "sample-project", "version": version, "sha256": sha256}


def test_an_sdist_is_imported_without_building_it(index: Path, tmp_path: Path) -> None:
    backend = {
        "pyproject.toml": """
            [build-system]
            requires = ["not-there-at-all"]
            build-backend = "backend"
            backend-path = ["."]
        """,
        "backend.py": "raise SystemExit('upstream code runs on this machine')\n",
    }
    source = sdist(archive(index, {**PROJECT, **backend}))
    prepared = prepare_repository(tmp_path, pin(tmp_path, manifest(source)))
    assert (prepared.tree / "backend.py").is_file()
    assert not (prepared.tree / "PKG-INFO").exists()
    mode = (prepared.tree / "backend.py").stat()
    assert stat.S_IMODE(mode.st_mode) == 0o644
    assert mode.st_uid == os.getuid()


def test_a_wrong_hash_shows_both(machine: Path, index: Path, tmp_path: Path) -> None:
    found = archive(index, PROJECT)
    with pytest.raises(SourceError) as caught:
        prepare_repository(tmp_path, manifest(sdist("f" * 64)))
    message = str(caught.value).splitlines()[0]
    assert message.startswith(f"{tmp_path / 'repository.toml'}: source.sha256: expected {'f' * 64}")
    assert found in message
    assert not list((machine / "sources").iterdir())


def test_a_missing_version_names_those_there_are(index: Path, tmp_path: Path) -> None:
    archive(index, PROJECT)
    with pytest.raises(
        SourceError, match=r"repository.toml: source.version: sample-project 9.9 has no sdist .*1\.2\.3"
    ):
        prepare_repository(tmp_path, manifest(sdist("f" * 64, version="9.9")))


@pytest.mark.parametrize(
    ("name", "link", "complaint"),
    [
        ("p-1/../../escaped", None, "outside the archive"),
        ("/escaped", None, "outside the archive"),
        ("p-1/link", "../../outside", "leads out of the tree"),
        ("p-1/link", "/etc/passwd", "leads out of the tree"),
        ("other/file", None, "is no source distribution"),
    ],
)
def test_archives_that_reach_outside_are_refused(tmp_path: Path, name: str, link: str | None, complaint: str) -> None:
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("p-1/first"), io.BytesIO())
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        tar.addfile(member, io.BytesIO())
    (tmp_path / "a/b").mkdir(parents=True)

    def unpack() -> None:
        importing.unpack_sdist(tmp_path / "p.tar.gz", tmp_path / "a/b")
        importing.refuse_escapes(tmp_path / "a/b")

    with pytest.raises(SourceError, match=complaint):
        unpack()
    assert not (tmp_path / "a/escaped").exists()


def test_no_archive_member_is_written_through_a_link(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("p-1/link")
        member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path / "outside")
        tar.addfile(member)
        tar.addfile(tarfile.TarInfo("p-1/link/file"), io.BytesIO())
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").mkdir()
    with pytest.raises(OSError, match="exists"):
        importing.unpack_sdist(tmp_path / "p.tar.gz", tmp_path / "tree")
    assert not list((tmp_path / "outside").iterdir())


def test_devices_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("p-1/pipe")
        member.type = tarfile.FIFOTYPE
        tar.addfile(member)
    with pytest.raises(SourceError, match="no file, folder or link"):
        importing.unpack_sdist(tmp_path / "p.tar.gz", tmp_path)


# git and folder sources


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A git repository with two commits."""
    tree = lay(tmp_path / "upstream", PROJECT)
    git(tree, "init", "--quiet", "--initial-branch=trunk")
    for message in ("first", "second"):
        (tree / "CHANGES").write_text(f"{message}\n")
        git(tree, "add", "--all", "--force")
        git(tree, "commit", "--quiet", "--message", message)
    return tree


@pytest.mark.parametrize("revision", ["trunk", "trunk~1"])
def test_a_git_source_at_a_commit(upstream: Path, tmp_path: Path, revision: str) -> None:
    commit = git(upstream, "rev-parse", revision).strip()
    repository = manifest({"kind": "git", "url": upstream.as_uri(), "commit": commit})
    prepared = prepare_repository(tmp_path, pin(tmp_path, repository))
    assert (prepared.tree / "CHANGES").read_text() == ("second\n" if revision == "trunk" else "first\n")
    assert (prepared.tree / "data/crlf.txt").read_bytes() == b"one\ntwo\n"  # as upstream's own commit has it
    assert len(history(prepared.tree)) == 1
    shutil.rmtree(upstream)
    assert prepare_repository(tmp_path, repository.model_copy(update={"commit": prepared.commit})) == prepared


def test_git_errors_name_their_key(upstream: Path, tmp_path: Path) -> None:
    missing = {"kind": "git", "url": upstream.as_uri(), "commit": "1" * 40}
    with pytest.raises(SourceError, match=rf"repository.toml: source.commit: .* has no commit {'1' * 40}"):
        prepare_repository(tmp_path, manifest(missing))
    nowhere = {"kind": "git", "url": (tmp_path / "nowhere").as_uri(), "commit": "1" * 40}
    with pytest.raises(SourceError, match=r"repository.toml: source.url: tried to fetch 'file:.*nowhere.*offline"):
        prepare_repository(tmp_path, manifest(nowhere))
    command = {"kind": "git", "url": "ext::sh -c touch% owned", "commit": "1" * 40}
    with pytest.raises(SourceError, match=r"source\.url"):
        prepare_repository(tmp_path, manifest(command))


def test_a_folder_source_is_checked_each_time(tmp_path: Path) -> None:
    repository = pin(tmp_path, folder_repository(tmp_path, PROJECT))
    prepared = prepare_repository(tmp_path, repository)
    (tmp_path / "project/__pycache__").mkdir()
    (tmp_path / "project/__pycache__/left.pyc").write_bytes(b"left by a tool")
    assert prepare_repository(tmp_path, repository) == prepared
    (tmp_path / "project/src/sample/__init__.py").write_text("VALUE = 2\n")
    with pytest.raises(
        SourceError, match=r"source.sha256: expected [0-9a-f]{64}, the folder 'project' has [0-9a-f]{64}"
    ):
        prepare_repository(tmp_path, repository)
    shutil.rmtree(tmp_path / "project")
    with pytest.raises(SourceError, match=r"source.folder: no folder 'project' beside the manifest"):
        prepare_repository(tmp_path, repository)


# The import


def test_a_wrong_commit_shows_the_right_one(tmp_path: Path) -> None:
    repository = pin(tmp_path, folder_repository(tmp_path, PROJECT))
    wrong = repository.model_copy(update={"commit": "a" * 40})
    with pytest.raises(SourceError) as caught:
        prepare_repository(tmp_path, wrong)
    assert f"repository.toml: commit: expected {'a' * 40}, the import commit is {repository.commit}" in str(
        caught.value
    )


def test_unwanted_files_are_stripped(tmp_path: Path) -> None:
    unwanted = [
        *(
            "CLAUDE.md",
            "docs/AGENTS.md",
            "GEMINI.md",
            "agents.md",
            ".cursorrules",
            ".cursor/rules/a.mdc",
            ".aider.conf.yml",
        ),
        *(".windsurfrules", ".claude/settings.json", ".codex/config.toml", ".junie/guidelines.md", "src/CLAUDE.md"),
        *(".github/copilot-instructions.md", ".github/instructions/a.md", "PKG-INFO", "vendored/.git/HEAD"),
        *(
            "src/sample.egg-info/SOURCES.txt",
            "src/sample.egg-info/PKG-INFO",
            ".git-hooks/pre-commit",
            "docs/_static/a.css",
        ),
    ]
    kept = [
        *(
            ".github/workflows/ci.yml",
            ".gitignore",
            ".gitattributes",
            "docs/agents.md",
            "tests/data/old.egg-info/PKG-INFO",
        ),
        "instructions/a.md",
    ]
    tree = lay(tmp_path / "tree", dict.fromkeys([*unwanted, *kept], "x\n"))
    (tree / "README").symlink_to("CLAUDE.md")
    (tree / "dangling").symlink_to("never-there")
    importing.strip(tree, ["docs/_static"])
    left = {name for name, _ in cache.content_of(tree)}
    assert left == {*kept, "dangling"}
    assert not (tree / "vendored").exists()
    with pytest.raises(SourceError, match="strip: 'docs/_static' is not in the source"):
        importing.strip(tree, ["docs/_static"])


def test_everything_is_tracked_unless_gitignore_is_respected(tmp_path: Path) -> None:
    prepared = sample(tmp_path)
    assert "generated/table.py" in git(prepared.tree, "ls-files").split()
    respected = sample(tmp_path, respect_gitignore=True)
    assert "generated/table.py" not in git(respected.tree, "ls-files").split()
    assert (respected.tree / "generated/table.py").is_file()
    assert git(respected.tree, "status", "--porcelain") == ""
    assert prepared.commit != respected.commit
    variant = prepare_variant(respected, overlay=None, deletes=["tests"])
    assert (variant / "generated/table.py").is_file()
    assert "generated/table.py" not in git(variant, "ls-files").split()


def test_the_commit_depends_on_nothing_but_the_source(tmp_path: Path) -> None:
    repository = folder_repository(tmp_path, PROJECT)
    (tmp_path / "manifest.json").write_text(repository.model_dump_json(by_alias=True))
    hostile = lay(
        tmp_path / "home",
        {
            ".gitconfig": """
                [core]
                    autocrlf = true
                    hooksPath = /nonexistent/hooks
                    attributesFile = ~/.config/git/attributes
                [init]
                    defaultBranch = other
                    defaultObjectFormat = sha256
                [commit]
                    gpgSign = true
                [user]
                    name = Somebody
                    email = somebody@example.org
            """,
            ".config/git/ignore": "*.py\n",
            ".config/git/attributes": "* text eol=crlf\n",
        },
    )
    code = """
        import os, pathlib, sys
        from pytest_paranoia.schema.manifest import Repository
        from pytest_paranoia.workspaces.prepare import import_repository
        os.umask(int(sys.argv[2], 8))
        folder = pathlib.Path(sys.argv[1])
        print(import_repository(folder, Repository.model_validate_json((folder / "manifest.json").read_text())))
    """
    commits = []
    for number, (umask, extra) in enumerate(
        [
            ("022", {}),
            ("077", {"HOME": str(hostile), "TZ": "Asia/Tokyo", "GIT_DIR": "/nonexistent", "GIT_AUTHOR_NAME": "Else"}),
        ]
    ):
        env = environment({"PARANOIA_CACHE": str(tmp_path / f"cache{number}"), **extra})
        argv = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), umask]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        tree = Path(done.stdout.strip()) / "tree"
        commits.append(git(tree, "rev-parse", "main").strip())
        blob = subprocess.run(["git", "show", "HEAD:data/crlf.txt"], cwd=tree, capture_output=True, check=True).stdout
        assert blob == b"one\r\ntwo\r\n"
        assert (tree / "data/crlf.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert history(tree) == ["Maintainers|maintainers@example.org|1795770000|Maintainers|1795770000|Initial import"]
    assert commits[0] == commits[1]


# The environment


def test_metadata_entry_points_and_scripts_are_in_the_environment(tmp_path: Path) -> None:
    prepared = sample(tmp_path)
    work = tmp_path / "workspace"
    copy_tree(prepared.tree, work)
    code = """
        import importlib.metadata as m, json
        dist = m.distribution("sample-project")
        points = {point.group: point.value for point in dist.entry_points}
        print(json.dumps([dist.version, dist.metadata["Summary"], points, m.packages_distributions()["sample"]]))
    """
    shown = in_env(prepared.python_env, work / "src", "python", "-c", textwrap.dedent(code), cwd=work)
    points = {"console_scripts": "sample.cli:main", "pytest11": "sample.plugin"}
    assert json.loads(shown) == ["1.2.3", "A sample.", points, ["Sample.Project"]]
    assert in_env(prepared.python_env, work / "src", "sample", cwd=work) == "sample speaks"
    value = in_env(prepared.python_env, work / "src", "python", "-c", "import sample; print(sample.__file__)", cwd=work)
    assert value == str(work / "src/sample/__init__.py")


def test_metadata_of_an_sdist_comes_from_pkg_info(index: Path, tmp_path: Path) -> None:
    egg_info = {"src/sample.egg-info/entry_points.txt": "[console_scripts]\nother = sample.cli:main\n"}
    pyproject = {"pyproject.toml": '[project]\nname = "sample-project"\ndynamic = ["version"]\n'}
    source = sdist(archive(index, {**PROJECT, **pyproject, **egg_info}))
    prepared = prepare_repository(tmp_path, pin(tmp_path, manifest(source)))
    (info,) = toolchain.site_packages(prepared.python_env).glob("*.dist-info")
    assert info.name == "sample_project-1.2.3.dist-info"
    assert "Summary: from PKG-INFO" in (info / "METADATA").read_text()
    assert (prepared.python_env / "bin/other").is_file()


def test_the_lock_never_shadows_the_repository(tmp_path: Path) -> None:
    text = (DATA / "tasks/pairs/tinydb/requirements.txt").read_text()
    start = text.index("iniconfig==")
    (tmp_path / "requirements.txt").write_text(text[start : text.index("packaging==")])
    files = {"pyproject.toml": '[project]\nname = "iniconfig"\nversion = "99"\n', "iniconfig.py": ""}
    repository = folder_repository(tmp_path, files, requirements="requirements.txt", packages=["iniconfig"])
    prepared = prepare_repository(tmp_path, pin(tmp_path, repository))
    installed = sorted(path.name for path in toolchain.site_packages(prepared.python_env).glob("ini*"))
    assert installed == ["iniconfig-99.dist-info"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("six==1.0", "not hashed"),
        ("six==1.0 --hash=md5:00", "not hashed"),
        ("six>=1.0 --hash=sha256:" + "0" * 64, "not pinned"),
        ("six @ https://example.org/six.whl --hash=sha256:" + "0" * 64, "no URL"),
        ("--index-url https://example.org/simple", "options have no place"),
        ("-r other.txt", "options have no place"),
    ],
)
def test_a_lock_that_is_not_hashed_is_refused(machine: Path, tmp_path: Path, line: str, complaint: str) -> None:
    good = "# a comment\npytest==9.0 ; python_version >= '3.11' \\\n    --hash=sha256:" + "0" * 64 + "  # why\n\n"
    (tmp_path / "lock.txt").write_text(good)
    toolchain.checked_lock(tmp_path / "lock.txt")
    (tmp_path / "lock.txt").write_text(good + line + "\n")
    with pytest.raises(SourceError, match=rf"lock.txt:5: \S+: {complaint}"):
        prepare_repository(tmp_path, folder_repository(tmp_path, PROJECT, requirements="lock.txt"))
    assert not machine.exists()  # told before anything is fetched


def test_a_missing_lock_is_told_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as raised:
        prepare_repository(tmp_path, folder_repository(tmp_path, PROJECT, requirements="lock.txt"))
    assert str(raised.value) == (
        f"{tmp_path / 'lock.txt'}: key requirements names this file, which cannot be read (No such file or directory); "
        f"make the lock with `{toolchain.COMPILE}` (see `paranoia docs writing-pairs`)"
    )


def test_pip_mirrors_are_told_to_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = lay(
        tmp_path, {"pip.conf": "[global]\nindex-url = https://mirror.example.org/simple\ncert = /etc/ca.pem\n"}
    )
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")) or name == "SSL_CERT_FILE":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config / "pip.conf"))
    found = toolchain._mirrors(tmp_path)
    assert found["UV_DEFAULT_INDEX"] == "https://mirror.example.org/simple"
    assert found["SSL_CERT_FILE"] == "/etc/ca.pem"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://own.example.org/simple")
    assert toolchain._mirrors(tmp_path) == {}


def test_the_plain_environment_has_no_packages() -> None:
    env = plain_env()
    assert plain_env() == env
    assert [
        path.name for path in toolchain.site_packages(env).iterdir() if not path.name.startswith("_virtualenv")
    ] == []
    assert (env / "bin/python").resolve() == toolchain.base_interpreter()


# Variants and copies


def test_variants_differ_by_the_overlay_only(tmp_path: Path) -> None:
    prepared = sample(tmp_path)
    overlay = lay(tmp_path / "plus", {"docs/policy.md": "A fact.\n", "src/sample/__init__.py": "VALUE = 3\n"})
    plus = prepare_variant(prepared, overlay=overlay, deletes=["tests/test_value.py"])
    assert prepare_variant(prepared, overlay=overlay, deletes=["tests/test_value.py"]) == plus
    assert prepare_variant(prepared, overlay=None, deletes=[]) == prepared.tree
    found = subprocess.run(
        ["git", "diff", "--no-index", "--name-status", str(prepared.tree), str(plus)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    changed = {line.split("\t")[-1].split("/tree/")[-1] for line in found.splitlines() if "/.git/" not in line}
    assert changed == {"docs/policy.md", "src/sample/__init__.py", "tests/test_value.py"}
    assert not (plus / "tests").exists()  # an empty folder would tell
    assert history(plus) == history(prepared.tree)
    assert objects(plus).count("commit") == 1
    assert b"VALUE = 1" not in b"".join(
        subprocess.run(["git", "cat-file", "blob", name], cwd=plus, capture_output=True, check=True).stdout
        for name in git(plus, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)").split()
        if len(name) == 40 and git(plus, "cat-file", "-t", name).strip() == "blob"
    )
    times = {path.stat().st_mtime for path in plus.rglob("*") if ".git" not in path.relative_to(plus).parts[:1]}
    assert len(times) == 1
    with pytest.raises(SourceError, match="deletes: 'nowhere' is not in the repository"):
        prepare_variant(prepared, overlay=None, deletes=["nowhere"])
    (overlay / "src/sample/__init__.py").write_text("VALUE = 4\n")
    assert prepare_variant(prepared, overlay=overlay, deletes=[]) != plus


@pytest.mark.parametrize("files", [{".git/config": "x"}, {"src": "a file where a folder is"}])
def test_overlays_that_do_not_fit_are_refused(tmp_path: Path, files: dict[str, str]) -> None:
    prepared = sample(tmp_path)
    with pytest.raises(SourceError, match="plus"):
        prepare_variant(prepared, overlay=lay(tmp_path / "plus", files), deletes=[])


def test_a_copy_is_clean_without_a_refresh(tmp_path: Path) -> None:
    prepared = sample(tmp_path)
    copy = tmp_path / "copy"
    copy_tree(prepared.tree, copy)
    before = (copy / ".git/index").read_bytes()
    # diff-files compares the index with the files' sizes and times and refreshes nothing.
    assert git(copy, "diff-files") == ""
    assert git(copy, "status", "--porcelain") == ""
    assert (copy / ".git/index").read_bytes() == before
    packs = list((copy / ".git/objects").rglob("*.pack"))
    assert len(packs) == 1
    assert not [path for path in (copy / ".git/objects").iterdir() if len(path.name) == 2]
    (copy / "src/sample/__init__.py").write_text("VALUE = 2\n")  # same size
    assert git(copy, "status", "--porcelain") == " M src/sample/__init__.py\n"
    git(copy, "commit", "--quiet", "--all", "--message", "works without configuration")
    with pytest.raises(FileExistsError):
        copy_tree(prepared.tree, copy)


# Scenarios


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    files = {"workspace/state.json": "{}\n", "steps/accuse.md": "You broke it.\n", "scenario.toml": "schema = 1\n"}
    return lay(tmp_path / "tasks/accusations/devops/shipping", files)


def never(_tree: Path) -> None:
    raise AssertionError("there is no setup.sh")


def test_a_scenario_without_setup_becomes_a_repository(scenario: Path, tmp_path: Path) -> None:
    service = lay(tmp_path, {"deploy": "#!/usr/bin/env python3\n"}) / "deploy"
    tree = prepare_scenario(scenario, [service], never)
    assert sorted(path.name for path in tree.iterdir()) == [".git", "state.json"]
    assert len(history(tree)) == 1
    assert prepare_scenario(scenario, [service], never) == tree
    service.write_text("#!/usr/bin/env python3\n# changed\n")
    assert prepare_scenario(scenario, [service], never) != tree


def test_setup_runs_once_and_keeps_its_history(scenario: Path, tmp_path: Path) -> None:
    (scenario / "setup.sh").write_text("git init\n")
    ran = []

    def setup(tree: Path) -> None:
        ran.append(tree)
        git(tree, "init", "--quiet")
        for message in ("one", "two"):
            (tree / "log").write_text(message)
            git(tree, "add", ".")
            git(tree, "commit", "--quiet", "--message", message)

    tree = prepare_scenario(scenario, [], setup)
    assert prepare_scenario(scenario, [], setup) == tree
    assert len(ran) == 1
    assert len(history(tree)) == 2
    copy_tree(tree, tmp_path / "copy")
    assert git(tmp_path / "copy", "diff-files") == ""
    assert git(tmp_path / "copy", "status", "--porcelain") == ""


def test_a_setup_that_fails_leaves_nothing(machine: Path, scenario: Path) -> None:
    (scenario / "setup.sh").write_text("false\n")

    def failing(_tree: Path) -> None:
        raise SourceError("setup.sh: exit status 1")

    with pytest.raises(SourceError, match="exit status 1"):
        prepare_scenario(scenario, [], failing)
    assert not list((machine / "scenarios").iterdir())
    assert not list((machine / "staging").iterdir())


# Many processes, and processes that die

WORKER = """
    import pathlib, sys, time
    from pytest_paranoia.schema.manifest import Repository
    from pytest_paranoia.workspaces import cache, git
    from pytest_paranoia.workspaces.prepare import prepare_repository
    folder = pathlib.Path(sys.argv[1])
    repository = Repository.model_validate_json((folder / "manifest.json").read_text())
    original = git.commit_tree
    def commit_tree(tree, **options):
        (folder / "midway").touch()
        time.sleep(float(sys.argv[2]))
        return original(tree, **options)
    git.commit_tree = commit_tree
    print("ready", flush=True)
    sys.stdin.readline()
    prepared = prepare_repository(folder, repository)
    print(prepared.commit, *sorted(cache.built.kinds), flush=True)
"""


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(folder: Path, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", textwrap.dedent(WORKER), str(folder), str(seconds)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_of_eight_processes_one_does_the_work(
    tmp_path: Path, index: Path, workers: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = pin(tmp_path, manifest(sdist(archive(index, PROJECT))))
    (tmp_path / "manifest.json").write_text(repository.model_dump_json(by_alias=True))
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "other"))
    workers += [start(tmp_path, 0.3) for _ in range(8)]
    for process in workers:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].split() for process in workers]
    assert [process.returncode for process in workers] == [0] * 8
    assert {words[0] for words in said} == {repository.commit}
    assert sorted(kind for words in said for kind in words[1:]) == ["envs", "repositories", "sources"]
    assert not list((tmp_path / "other/staging").iterdir())


def test_a_killed_preparation_leaves_nothing_that_counts(
    tmp_path: Path, workers: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = pin(tmp_path, folder_repository(tmp_path, PROJECT))
    (tmp_path / "manifest.json").write_text(repository.model_dump_json(by_alias=True))
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "other"))
    workers.append(start(tmp_path, 60))
    assert workers[0].stdin is not None
    workers[0].stdin.write("go\n")
    workers[0].stdin.flush()
    deadline = time.monotonic() + 30
    while not (tmp_path / "midway").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait()
    assert len(list((tmp_path / "other/staging").iterdir())) == 1
    assert not list((tmp_path / "other/repositories").iterdir())
    prepared = prepare_repository(tmp_path, repository)
    assert prepared.commit == repository.commit
    assert not list((tmp_path / "other/staging").iterdir())


def test_an_overrunning_tool_is_ended(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
        #!/bin/sh
        case "$*" in *fetch*) sleep 60 ;; *) PATH=/usr/bin:/bin exec git "$@" ;; esac
    """
    fake = lay(tmp_path / "bin", {"git": script})
    (fake / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    monkeypatch.setattr(sources, "FETCH_SECONDS", 0.5)
    with pytest.raises(SourceError, match=r"git took longer than 0\.5 s and was ended"):
        prepare_repository(tmp_path, manifest({"kind": "git", "url": upstream.as_uri(), "commit": "1" * 40}))


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARANOIA_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(SourceError, match=r"cannot be used: .*PARANOIA_CACHE"):
        plain_env()


# The command


def write_manifest(items: Path, name: str, commit: str) -> None:
    folder = items / "tasks/pairs" / name
    digest = cache.tree_digest(lay(folder / "project", PROJECT))
    lay(
        folder,
        {
            "repository.toml": f"""
                schema = 1
                commit = "{commit}"
                license = "MIT"
                description = "A sample."
                pythonpath = ["src"]
                packages = ["sample"]
                test_command = "python -m pytest"
                test_seconds = 1.0
                source = {{ kind = "folder", folder = "project", sha256 = "{digest}" }}
            """
        },
    )


def test_the_command_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_manifest(tmp_path / "items", "alpha", ZERO)
    assert cli.main(["prepare", "--items", str(tmp_path / "items")]) == 1
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 1
    commit = shown.err.split('commit = "')[1][:40]
    write_manifest(tmp_path / "items", "alpha", commit)
    write_manifest(tmp_path / "items", "beta", "b" * 40)
    assert cli.main(["prepare", "--items", str(tmp_path / "items")]) == 1  # beta fails, alpha is prepared
    shown = capsys.readouterr()
    assert "alpha: environment built" in shown.out
    assert f"commit {commit}" in shown.out
    assert "1 prepared, 1 failed" in shown.out
    assert f"beta/repository.toml: commit: expected {'b' * 40}, the import commit is {commit}" in shown.err
    assert cli.main(["prepare", "alpha", "--items", str(tmp_path / "items")]) == 0
    assert "alpha: was prepared" in capsys.readouterr().out


def test_a_name_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_manifest(tmp_path / "items", "alpha", ZERO)
    for command in (["prepare", "nosuch"], ["images", "build", "nosuch"]):
        assert cli.main([*command, "--items", str(tmp_path / "items")]) == 2
        assert re.fullmatch(r"paranoia: no repository nosuch below \S+; there: .*alpha\n", capsys.readouterr().err)


def test_many_repositories_are_prepared_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are told in order, each with what was done for it, and one that fails leaves the others alone."""
    names = [f"part{number}" for number in range(8)]
    for name in names:
        write_manifest(tmp_path / "items", name, ZERO)
    assert cli.main(["prepare", "-j", "4", "--items", str(tmp_path / "items")]) == 1
    told = capsys.readouterr().err
    assert [line.split("/pairs/")[1].partition("/")[0] for line in told.splitlines()] == names
    commit = told.split('commit = "')[1][:40]
    for name in names[1:]:
        write_manifest(tmp_path / "items", name, commit)
    assert cli.main(["prepare", "-j", "4", "--items", str(tmp_path / "items")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == names[1:]
    assert all(": environment built (" in line for line in lines[:-1]), lines
    assert lines[-1].startswith("7 prepared, 1 failed")


INTERRUPTED = """
import pathlib, sys, threading
from pytest_paranoia.workspaces.process import in_threads, run_tool, user_environment

marks = pathlib.Path(sys.argv[1])

def call():
    script = f"import pathlib, time; pathlib.Path({str(marks)!r}, str(time.monotonic_ns())).touch(); time.sleep(600)"
    run_tool([sys.executable, "-c", script], cwd=marks, env=user_environment(), seconds=900)

print("begin", flush=True)
results = in_threads([call] * 6, 3)
try:
    next(results)
except KeyboardInterrupt:
    results.close()
    print("interrupted", threading.active_count(), len(list(marks.iterdir())), flush=True)
    done = run_tool([sys.executable, "-c", "print(7)"], cwd=marks, env=user_environment(), seconds=60)
    print("goes on", done.output.strip())
"""


def test_an_interrupt_ends_the_tools_of_all_threads(tmp_path: Path) -> None:
    """Ctrl-C reaches the main thread alone: three tools that would take ten minutes end, three more never begin."""
    argv = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output.splitlines() == ["begin", "interrupted 1 3", "goes on 7"]


@pytest.mark.parametrize("arguments", [["prepare", "gamma"], ["prepare", "--items", "nowhere"]])
def test_the_command_refuses_what_is_not_there(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_manifest(tmp_path / "items", "alpha", ZERO)
    full = arguments if "--items" in arguments else [*arguments, "--items", str(tmp_path / "items")]
    assert cli.main(full) == 2
    shown = capsys.readouterr().err
    assert "alpha" in shown or "--items DIR" in shown
    assert len(shown.splitlines()) == 1
