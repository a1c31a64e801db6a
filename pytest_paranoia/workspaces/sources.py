"""Upstream's files by hash: an sdist through pip, a git commit, a folder beside the manifest."""

from __future__ import annotations

import lzma
import re
import shutil
import sys
import tarfile
import zlib
from pathlib import Path

from pytest_paranoia.errors import SourceError
from pytest_paranoia.schema.manifest import FolderSource, GitSource, PyPISource, Source
from pytest_paranoia.workspaces import git, importing
from pytest_paranoia.workspaces.cache import cached, file_digest, tree_digest
from pytest_paranoia.workspaces.process import Finished, run_tool, user_environment

FETCH_SECONDS = 900.0
OFFLINE = "the first preparation needs the network, a machine that has prepared it works offline"


def identity(source: Source) -> str:
    """Return a readable name of *source* that holds its hash: equal names mean equal files."""
    match source:
        case PyPISource():
            return f"{importing.normalised(source.name)}-{source.version}-{source.sha256}"
        case GitSource():
            return f"git-{source.commit}"
        case FolderSource():
            return f"folder-{source.sha256}"


def verify_folder(manifest: Path, source: Source) -> None:
    """Raise SourceError where a folder source is not what its hash says: its files are the author's to edit."""
    if not isinstance(source, FolderSource):
        return
    folder = manifest.parent / source.folder
    if not folder.is_dir():
        raise SourceError(f"{manifest}: source.folder: no folder {source.folder!r} beside the manifest")
    found = tree_digest(folder)
    if found != source.sha256:
        raise SourceError(
            f"{manifest}: source.sha256: expected {source.sha256}, the folder {source.folder!r} has {found}; "
            "set it to that if the change is meant"
        )


def place(manifest: Path, source: Source, target: Path) -> None:
    """Put the files of *source* into the empty folder *target*, fetching them where this machine has not yet."""
    match source:
        case PyPISource():
            archive = fetch_sdist(manifest, source)
            try:
                importing.unpack_sdist(archive, target)
            except (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
                raise SourceError(f"{manifest}: source: {archive.name} cannot be unpacked: {error}") from error
        case GitSource():
            shutil.copytree(fetch_commit(manifest, source), target, symlinks=True, dirs_exist_ok=True)
        case FolderSource():
            verify_folder(manifest, source)
            importing.copy_content(manifest.parent / source.folder, target)


def fetch_sdist(manifest: Path, source: PyPISource) -> Path:
    """Return the verified archive of *source* in the cache."""

    def fetch(folder: Path) -> None:
        requirement = f"{source.name}=={source.version}"
        wanted = folder / "wanted.txt"
        wanted.write_text(f"{requirement} --hash=sha256:{source.sha256}\n")
        script = Path(__file__).with_name("_sdist_pip.py")
        argv = [sys.executable, "-P", str(script), "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        argv += ["--no-deps", "--no-binary", source.name, "--require-hashes", "--requirement", str(wanted)]
        argv += ["--dest", str(folder)]
        done = run_tool(argv, cwd=folder, env=user_environment(), seconds=FETCH_SECONDS)
        wanted.unlink()
        if done.status:
            raise SourceError(_pip_failure(manifest, source, done))
        archives = list(folder.iterdir())
        if len(archives) != 1:
            raise SourceError(f"{manifest}: source: pip left {len(archives)} files for {requirement}, expected one")
        found = file_digest(archives[0])
        if found != source.sha256:
            raise SourceError(_wrong_hash(manifest, source, found))

    (archive,) = cached("sources", identity(source), fetch).iterdir()
    return archive


def _wrong_hash(manifest: Path, source: PyPISource, found: str) -> str:
    return (
        f"{manifest}: source.sha256: expected {source.sha256}, the sdist of {source.name} {source.version} has {found}"
    )


def _pip_failure(manifest: Path, source: PyPISource, done: Finished) -> str:
    said = f"\n{done.tail()}"
    if found := re.search(r"\bGot\s+([0-9a-f]{64})\b", done.output):
        return _wrong_hash(manifest, source, found[1]) + said
    versions = re.search(r"from versions: ([^)]*)\)", done.output)
    known = [version.strip() for version in versions[1].split(",")] if versions else []
    unreachable = re.search(r"[Rr]etrying|[Cc]onnection|[Tt]imed? ?out|name resolution|Proxy", done.output)
    if re.search(rf"\b{re.escape(source.version)} Requires-Python", done.output):
        python = ".".join(map(str, sys.version_info[:2]))
        return f"{manifest}: source.version: {source.name} {source.version} is not for Python {python}{said}"
    if known and known != ["none"] and not unreachable:
        return (
            f"{manifest}: source.version: {source.name} {source.version} has no sdist in the package index that pip "
            f"is configured for (the last ones there: {', '.join(known[-3:])}){said}"
        )
    if versions or unreachable:
        return (
            f"{manifest}: source: tried to fetch the sdist of {source.name} {source.version} with pip and got "
            f"nothing: no network, or no such project in the package index that pip is configured for; {OFFLINE}{said}"
        )
    return (
        f"{manifest}: source: pip could not fetch the sdist of {source.name} {source.version}: "
        f"{done.complaint()}; {OFFLINE}{said}"
    )


def fetch_commit(manifest: Path, source: GitSource) -> Path:
    """Return the files of a git commit in the cache. git itself checks that they are the commit's."""

    def fetch(folder: Path) -> None:
        bare, files = folder / "bare", folder / "files"
        bare.mkdir()
        files.mkdir()
        git.init(bare, "--bare")
        _fetch_into(bare, manifest, source)
        git.git(bare, "read-tree", source.commit)
        git.git(bare, "--work-tree", str(files), "checkout-index", "--all", "--force")
        shutil.rmtree(bare)

    return cached("sources", identity(source), fetch) / "files"


def _fetch_into(bare: Path, manifest: Path, source: GitSource) -> None:
    # The user's configuration counts here (proxies, credentials, insteadOf), questions and helpers' hooks do not.
    env = user_environment({"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"})
    env.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")

    def fetch(*arguments: str) -> Finished:
        argv = ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "fetch", "--quiet", *arguments]
        return run_tool(argv, cwd=bare, env=env, seconds=FETCH_SECONDS)

    if fetch("--depth=1", "--no-tags", "--", source.url, source.commit).status == 0:
        return
    # Servers may refuse to hand out a commit by its id: then everything is fetched and the commit looked for.
    done = fetch("--", source.url, "+refs/*:refs/upstream/*")
    if done.status:
        raise SourceError(
            f"{manifest}: source.url: tried to fetch {source.url!r} with git: {done.complaint()}; {OFFLINE}\n"
            f"{done.tail()}"
        )
    if git.try_git(bare, "cat-file", "-e", f"{source.commit}^{{commit}}").status:
        raise SourceError(f"{manifest}: source.commit: {source.url!r} has no commit {source.commit}")
