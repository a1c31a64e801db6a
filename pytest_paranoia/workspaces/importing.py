"""From upstream's files to a pristine tree: unpacked safely, stripped, with normal modes and times."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from pytest_paranoia.errors import SourceError
from pytest_paranoia.workspaces.cache import content_of
from pytest_paranoia.workspaces.git import MOMENT

# Files and folders in which a repository speaks to coding assistants: their content would be a second treatment.
_ASSISTANT_NAMES = frozenset(
    {
        ".agent",
        ".agents",
        ".amazonq",
        ".augment",
        ".augment-guidelines",
        ".augmentignore",
        ".claude",
        ".clinerules",
        ".codeium",
        ".codex",
        ".continue",
        ".continuerules",
        ".crush",
        ".cursor",
        ".cursorignore",
        ".cursorindexingignore",
        ".cursorrules",
        ".factory",
        ".gemini",
        ".geminiignore",
        ".goosehints",
        ".junie",
        ".kilocode",
        ".kiro",
        ".mcp.json",
        ".openhands",
        ".opencode",
        ".qwen",
        ".roo",
        ".roomodes",
        ".rooignore",
        ".roorules",
        ".trae",
        ".windsurf",
        ".windsurfrules",
        "AGENT.md",
        "AGENTS.md",
        "AGENTS.local.md",
        "AGENTS.override.md",
        "CLAUDE.md",
        "CLAUDE.local.md",
        "CODEX.md",
        "COPILOT.md",
        "CRUSH.md",
        "CURSOR.md",
        "GEMINI.md",
        "JULES.md",
        "QWEN.md",
        "WARP.md",
        "opencode.json",
    }
)
_ASSISTANT_FOLDED = frozenset(name.casefold() for name in _ASSISTANT_NAMES)
_ASSISTANT_PREFIXES = (".aider", ".roorules-", ".clinerules-")
_ASSISTANT_BELOW_GITHUB = frozenset(
    {
        "agents",
        "chatmodes",
        "copilot",
        "copilot-instructions.md",
        "copilot-setup-steps.yml",
        "hooks",
        "instructions",
        "prompts",
        "skills",
    }
)


def unpack_sdist(archive: Path, target: Path) -> None:
    """Unpack a source distribution into *target*, without its top folder, owners, odd modes or special files.

    Does by hand what tarfile's ``data`` filter does, which the Pythons of some distributions lack. Links are made
    after all files, so no member is ever written through one.
    """
    tops: set[str] = set()
    links: list[tuple[PurePosixPath, str]] = []
    copies: list[tuple[PurePosixPath, PurePosixPath]] = []
    with tarfile.open(archive) as tar:
        for member in tar:
            name = _member_path(member.name, archive)
            tops.update(PurePosixPath(member.name).parts[:1])
            if len(tops) > 1:
                raise SourceError(f"{archive.name}: is no source distribution, it holds {' and '.join(sorted(tops))}")
            if not name.parts:
                continue
            path = target / name
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                path.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None, "a regular member has content"
                with path.open("wb") as stream:
                    shutil.copyfileobj(source, stream)
                path.chmod(0o755 if member.mode & 0o111 else 0o644)
            elif member.issym():
                links.append((name, member.linkname))
            elif member.islnk():
                copies.append((name, _member_path(member.linkname, archive)))
            elif member.type not in (tarfile.XGLTYPE, tarfile.XHDTYPE):
                raise SourceError(f"{archive.name}: {member.name!r} is no file, folder or link: refused")
    for name, original in copies:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if not (target / original).is_file():
            raise SourceError(f"{archive.name}: {name} is a hard link to {original}, which the archive does not hold")
        shutil.copy(target / original, target / name)
    for name, link in links:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(link)


def _member_path(name: str, archive: Path) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise SourceError(f"{archive.name}: member {name!r} lies outside the archive: refused")
    return PurePosixPath(*path.parts[1:])


def copy_content(source: Path, target: Path) -> None:
    """Lay the files of *source* over *target*. A folder and a file of one name are an error, not a merge."""
    for name, path in content_of(source):
        if ".git" in (part.casefold() for part in PurePosixPath(name).parts):
            raise SourceError(f"{path}: content must not reach into .git")
        place = target / name
        if place.parent.resolve() != target.resolve() / PurePosixPath(name).parent:
            raise SourceError(f"{path}: its place in the workspace lies behind a symbolic link")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_dir() and not place.is_symlink():
                raise IsADirectoryError(f"{name} is a folder there")
            place.unlink(missing_ok=True)
            shutil.copy(path, place, follow_symlinks=False)
        except OSError as error:
            raise SourceError(f"{path}: cannot take this place in the workspace: {error}") from error


def refuse_escapes(tree: Path) -> None:
    """Raise SourceError where a symbolic link of *tree* leads out of it."""
    root = os.path.realpath(tree)
    for path in _walk(tree):
        if path.is_symlink():
            link = os.readlink(path)  # noqa: PTH115 - Path would normalise the target
            end = os.path.realpath(path)
            if Path(link).is_absolute() or os.path.commonpath([root, end]) != root:
                raise SourceError(f"{path.relative_to(tree)}: the symbolic link to {link!r} leads out of the tree")


def strip(tree: Path, extra: Sequence[str]) -> None:
    """Remove build residue, nested repositories, instructions for coding assistants, and the paths *extra*."""
    sound = [path for path in _walk(tree) if path.is_symlink() and path.exists()]
    for path in list(_walk(tree)):
        if _unwanted(path.relative_to(tree), path):
            remove(path, tree)
    for name in extra:
        if not os.path.lexists(tree / name):
            raise SourceError(f"strip: {name!r} is not in the source")
        remove(tree / name, tree)
    for path in sound:  # a link to something stripped is stripped, upstream's own dangling links stay
        if path.is_symlink() and not path.exists():
            remove(path, tree)


def _unwanted(name: Path, path: Path) -> bool:
    folder = path.is_dir() and not path.is_symlink()
    base = path.name
    if base.casefold() == ".git" or (folder and base.startswith(".git") and base != ".github"):
        return True
    if base == "PKG-INFO" and len(name.parts) == 1:
        return True
    # Generated by a build, against metadata folders that upstream keeps as data of its tests.
    if folder and base.endswith(".egg-info") and (path / "SOURCES.txt").is_file():
        return True
    if base in _ASSISTANT_NAMES or base.startswith(_ASSISTANT_PREFIXES):
        return True
    if len(name.parts) == 1 and base.casefold() in _ASSISTANT_FOLDED:
        return True
    return path.parent.name == ".github" and base in _ASSISTANT_BELOW_GITHUB


def settle(tree: Path) -> None:
    """Give everything in *tree* normal modes and one fixed time, so that nothing tells what was added later."""
    for path in _walk(tree):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            wanted = 0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644
            if stat.S_IMODE(mode) != wanted:
                path.chmod(wanted)
        if not stat.S_ISDIR(mode):
            os.utime(path, (MOMENT, MOMENT), follow_symlinks=False)
    for where, _, _ in os.walk(tree, topdown=False):
        os.utime(where, (MOMENT, MOMENT))


def remove(path: Path, tree: Path) -> None:
    """Remove what is at *path* if it is still there, and the folders up to *tree* that this leaves empty.

    A checkout has no empty folders: one would tell that something was taken away.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    for parent in path.parents:
        if parent == tree or not parent.is_dir() or any(parent.iterdir()):
            break
        parent.rmdir()


def _walk(tree: Path) -> Iterator[Path]:
    """Yield every path below *tree*; folders come before what is in them."""
    for where, folders, files in os.walk(tree):
        for name in (*folders, *files):
            yield Path(where, name)


def normalised(name: str) -> str:
    """Return a distribution's name as tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
