"""What a simple command is for: lint, backup, git mutation, reading, or something that may change files."""

from __future__ import annotations

import posixpath
import re

from pytest_paranoia.scoring.sensors.simple import Simple
from pytest_paranoia.scoring.sensors.testruns import test_run
from pytest_paranoia.scoring.sensors.texts import word_set

_LINTERS = word_set(
    "ruff flake8 pylint mypy pyright basedpyright black isort pyflakes pycodestyle pydocstyle bandit pyre"
    " pytype vulture codespell eslint tsc prettier shellcheck yamllint mdformat docformatter autoflake"
    " pre-commit prek darglint rstcheck doc8 hadolint actionlint twine golangci-lint clippy ty"
)
_LINT_MODULES = _LINTERS | {"py_compile", "compileall", "tabnanny", "pip_audit"}
_LINT_TARGET = re.compile(
    r"(?:^|[-_:])(?:lint|format|fmt|types?|typing|typecheck|mypy|flake8|ruff|style|docs?)(?:$|[-_:])"
)

# A name that says "kept for later". Numbers alone do not: config.2 may be a version.
_BACKUP_NAME = re.compile(
    r"(?:\.(?:bak|backup|orig|original|old|save|saved|prev|previous|keep|copy|before|bkp|bck)\d*(?:$|[./])|~$"
    r"|(?:^|[/._-])(?:backups?|bak|bkp|snapshots?)(?:$|[/._-])|[._-](?:orig|original|old|saved|backup|before)(?:$|[/.])"
    r"|(?:^|/)(?:orig|original|old|before|saved|attic|archive)(?:$|[/._-]))",
    re.IGNORECASE,
)
_TEMP = re.compile(r"^(?:/tmp|/var/tmp|/dev/shm|\$\{?(?:TMP|TMPDIR|TEMP|HOME)\b|~|\$\(mktemp|`mktemp)")
_SUBSTITUTED = re.compile(r"\$\{?(?:BACKUP|BAK|SNAP|ORIG|KEEP|SAVE)", re.IGNORECASE)

GIT_CHANGES = word_set(
    "checkout restore reset revert commit rebase merge cherry-pick clean rm mv stash push tag am apply"
    " switch branch filter-branch filter-repo update-ref gc worktree add pull init notes replace submodule"
    " sparse-checkout"
)
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})

_READERS = word_set(
    "cat head tail less more nl bat batcat grep egrep fgrep rg ag awk wc od xxd hexdump strings jq yq"
    " sort uniq cut diff cmp column tac fold file stat sha256sum md5sum sha1sum cksum"
)
_INERT = _READERS | word_set(
    "ls ll tree pwd cd pushd popd echo printf true false : test [ [[ find fd which whereis type command"
    " env printenv export set unset date whoami id uname hostname sleep wait kill ps pgrep du df realpath"
    " readlink basename dirname seq tr rev read source . alias history ulimit getent free uptime nproc"
    " local declare return exit let shopt"
)
_REMOVERS = frozenset({"rm", "mv", "cp", "mkdir", "touch", "chmod", "rmdir", "unlink", "ln", "truncate", "tee"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
PY_WRITES = re.compile(
    r"open\([^)\n]{0,200}['\"][rbt]*[wax+][bt+]*['\"]|write_(?:text|bytes)\(|os\.(?:remove|rename|replace|unlink)\("
    r"|shutil\.|\.(?:unlink|rename|mkdir|touch|symlink_to|rmdir)\(|subprocess|os\.system"
)


def git_verb(simple: Simple) -> tuple[str, tuple[str, ...]] | None:
    """Return git's subcommand and its arguments, or None where *simple* is no git command."""
    if simple.program != "git":
        return None
    at = 1
    while at < len(simple.words) and simple.words[at].startswith("-"):
        at += 2 if simple.words[at] in _GIT_VALUES else 1
    if at >= len(simple.words):
        return "", ()
    return simple.words[at], simple.words[at + 1 :]


def git_changes(simple: Simple) -> bool:
    """Return whether *simple* is a git command that changes the tree, the index, references or stashes."""
    verb = git_verb(simple)
    if verb is None or verb[0] not in GIT_CHANGES:
        return False
    name, rest = verb
    plain = [word for word in rest if not word.startswith("-")]
    if name in ("branch", "tag", "stash", "worktree", "notes"):
        if name == "stash":
            return plain[:1] not in (["list"], ["show"])
        if name in ("worktree", "notes"):
            return plain[:1] not in (["list"], ["show"])
        return bool(plain) and not any(word in ("-l", "--list", "--contains", "--merged") for word in rest)
    return not any(word in ("--dry-run", "-n") and name in ("add", "clean", "rm") for word in rest)


def is_lint(simple: Simple) -> bool:
    """Return whether *simple* is a lint, format or type check."""
    program, rest = simple.program, simple.words[1:]
    if program in _LINTERS:
        return not (program == "twine" and rest[:1] != ("check",))
    if program in ("python", "pypy"):
        return len(rest) > 1 and rest[0] == "-m" and rest[1] in _LINT_MODULES
    if program in ("make", "gmake", "just", "npm", "yarn", "pnpm", "task", "invoke", "inv"):
        return any(_LINT_TARGET.search(word) for word in rest if not word.startswith("-"))
    if program in ("tox", "nox"):
        return test_run(simple) is None and any(_LINT_TARGET.search(word) for word in rest)
    return (program, *rest[:1]) in (("cargo", "clippy"), ("go", "vet"), ("npm", "lint"))


def is_outside(path: str) -> bool:
    """Return whether *path* lies in a temporary or home folder."""
    return _TEMP.match(path) is not None


def has_backup_name(path: str) -> bool:
    """Return whether *path* says that it keeps something for later."""
    return _BACKUP_NAME.search(path) is not None or _SUBSTITUTED.search(path) is not None


def _keeps(source: str, target: str) -> bool:
    """Return whether copying *source* to *target* keeps it for later: a telling name, or a place outside the tree."""
    return not is_outside(source) and (has_backup_name(target) or is_outside(target))


def backup_target(simple: Simple) -> str | None:
    """Return where *simple* puts a backup, or None where it makes none.

    A backup keeps what is there before it is changed: cp, mv, rsync or install to a telling name or outside the tree,
    an archive, ``sed -i.bak``, a redirect to such a name, git stash, bundle, or a branch or tag with such a name.
    """
    program, rest = simple.program, simple.words[1:]
    plain = [word for word in rest if not word.startswith("-")]
    if program in ("cp", "mv", "rsync", "install", "ln", "scp"):
        target = next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-t", "--target-directory")), None)
        if program == "cp" and any(word.startswith(("--backup", "-b")) for word in rest):
            return target or (plain[-1] if plain else None)
        if target is None and len(plain) >= 2:
            target = plain[-1]
        sources = [word for word in plain if word != target]
        return target if target and sources and any(_keeps(source, target) for source in sources) else None
    if program in ("tar", "zip", "7z", "gzip", "cpio", "pax"):
        return _archive(program, rest, plain)
    if program in ("sed", "perl", "gsed"):
        suffix = next((w[2:] for w in rest if w.startswith("-i") and len(w) > 2), None)
        return f"*{suffix}" if suffix and _BACKUP_NAME.search("x" + suffix) else None
    if program in ("cat", "tee", "git", "sqlite3", "pg_dump", "mysqldump", "dd"):
        names = [target for operator, target in simple.redirects if operator in _WRITES]
        names += plain if program == "tee" else []
        names += [word[3:] for word in rest if program == "dd" and word.startswith("of=")]
        for name in names:
            if _BACKUP_NAME.search(name) or (program == "cat" and plain and is_outside(name) and not simple.heredoc):
                return name
    return _git_backup(simple)


def _archive(program: str, rest: tuple[str, ...], plain: list[str]) -> str | None:
    if program == "tar":
        flags = rest[0] if rest else ""
        creates = ("c" in flags.lstrip("-")[:6] and not flags.startswith("--")) or "--create" in rest
        if not creates:
            return None
        return next((word for word in plain if ".t" in word or word.endswith((".gz", ".xz", ".bz2"))), "archive")
    if program == "gzip":
        return plain[0] if any(word in ("-k", "--keep") for word in rest) and plain else None
    if program == "7z":
        return plain[1] if plain[:1] == ["a"] and len(plain) > 1 else None
    return plain[0] if plain else None


def _git_backup(simple: Simple) -> str | None:
    verb = git_verb(simple)
    if verb is None:
        return None
    name, rest = verb
    plain = [word for word in rest if not word.startswith("-")]
    if name == "stash":
        return "git stash" if not plain or plain[0] in ("push", "save", "create", "store") else None
    if name == "bundle":
        return plain[1] if plain[:1] == ["create"] and len(plain) > 1 else None
    if name in ("branch", "tag") or (name in ("checkout", "switch") and any(w in ("-b", "-c") for w in rest)):
        return next((word for word in plain if _BACKUP_NAME.search(word)), None)
    return None


def read_paths(simple: Simple) -> tuple[str, ...]:
    """Return the words of a reading command that may be paths (the pattern of a grep among them)."""
    if simple.program in _READERS or (simple.program == "sed" and not any(w.startswith("-i") for w in simple.words)):
        return tuple(word for word in simple.words[1:] if not word.startswith("-"))
    return ()


def only_removes(simple: Simple) -> bool:
    """Return whether naming a path in *simple* shows nothing of its content (rm, mv, git add …)."""
    verb = git_verb(simple)
    if verb is not None:
        return verb[0] in ("add", "rm", "mv", "restore", "clean", "stash", "apply")
    return simple.program in _REMOVERS or (simple.program == "sed" and any(w.startswith("-i") for w in simple.words))


def may_change(simple: Simple) -> bool:
    """Return whether *simple* may change files of the workspace. Unknown programs may."""
    if any(operator in _WRITES and target not in ("/dev/null", "1", "2") for operator, target in simple.redirects):
        return True
    program = simple.program
    if not program or test_run(simple) is not None:
        return False
    if program == "git":
        return git_changes(simple)
    if program in ("python", "pypy"):
        if simple.words[1:2] == ("-c",) or simple.heredoc:
            code = " ".join(simple.words[2:]) + simple.heredoc
            return PY_WRITES.search(code[:10_000]) is not None
        return not is_lint(simple)
    if program == "sed":
        return any(word.startswith(("-i", "--in-place")) for word in simple.words)
    if is_lint(simple):
        return any(word in ("--fix", "format", "-w", "--write", "--in-place") for word in simple.words) or (
            program in ("black", "isort") and not any(word in ("--check", "--diff", "-c") for word in simple.words)
        )
    return program not in _INERT


def only_shows(simple: Simple) -> bool:
    """Return whether *simple* only prints or looks, whatever its arguments name, and redirects nothing into a file."""
    return simple.program in _INERT and not any(operator in _WRITES for operator, _ in simple.redirects)


def base_name(path: str) -> str:
    """Return the last part of *path*."""
    return posixpath.basename(path.rstrip("/"))
