"""Recognise test commands: which runner, which tests it names, whether it is the whole suite."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from pytest_paranoia.scoring.sensors.simple import Simple
from pytest_paranoia.scoring.sensors.texts import word_set

# Options of pytest that take their value as the next word.
_PYTEST_VALUES = word_set(
    "-k -m -n -p -c -o -W --rootdir --maxfail --tb --durations --durations-min --junitxml --junit-xml"
    " --timeout --ignore --ignore-glob --deselect --basetemp --confcutdir --import-mode --capture --color"
    " --numprocesses --dist --cov-report --cov-config --count --log-level --log-cli-level --override-ini"
    " --config-file --verbosity --show-capture --cov-fail-under --reruns --randomly-seed --benchmark-save"
    " --hypothesis-seed --hypothesis-profile -e"
)
_NOT_A_RUN = word_set(
    "--collect-only --co --version -V --help -h --fixtures --markers --setup-plan --trace-config --cache-show"
)
_PYTEST = frozenset({"pytest", "py.test", "ptw", "pytest-watch"})
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|tests?|runtests|run_tests)\.py$")
_TARGET_NAME = re.compile(r"(?:^|[-_:])(?:tests?|check|pytest|unit|integration|coverage|cov|e2e|spec)(?:$|[-_:])")
_LINT_NAME = re.compile(r"lint|format|fmt|typ(?:e|ing)|mypy|flake|ruff|style|docs?\b|pre-?commit|black|isort|pyright")
_MAKERS = frozenset({"make", "gmake", "just", "task", "invoke", "inv", "rake"})
_PACKAGE = frozenset({"npm", "yarn", "pnpm", "bun"})
_PY_MAIN = re.compile(r"\b(?:pytest|unittest)\.main\(|\bunittest\.TextTestRunner\b|\brunpy\.run_module\(\s*['\"]pytest")
_WHOLE_FOLDERS = frozenset({"", ".", "test", "tests", "testing", "src", "src/tests", "./..."})


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test command. ``targets`` are the paths or ids it names, ``selected`` a ``-k`` or ``-m`` expression."""

    __test__ = False

    runner: str
    targets: tuple[str, ...]
    selected: str
    raw: str
    cwd: str
    times: int

    @property
    def whole(self) -> bool:
        """True where the command names no path, or only the root of the tests: the whole suite."""
        return all(_plain(target) in _WHOLE_FOLDERS for target in self.targets) and not self.cwd

    @property
    def broad(self) -> bool:
        """True where it runs the whole suite unfiltered, or a matrix of environments."""
        if self.runner in ("tox", "nox"):
            return not self.targets
        return self.whole and not self.selected

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for two commands that run the same tests, however verbose."""
        return (self.runner, self.selected, self.cwd, *sorted(_plain(target) for target in self.targets))


def _plain(target: str) -> str:
    target = target.removeprefix("./").rstrip("/")
    return "" if target in (".", "$PWD", "${PWD}") else target


def _pytest(arguments: list[str], simple: Simple, runner: str = "pytest") -> TestRun | None:
    targets: list[str] = []
    selected: list[str] = []
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word in _NOT_A_RUN:
            return None
        if word in ("-k", "-m"):
            selected.extend(arguments[at : at + 1])
            at += 1
        elif word.startswith(("-k", "-m")) and len(word) > 2 and not word.startswith("--"):
            selected.append(word[2:].lstrip("="))
        elif word in ("--pyargs", "--"):
            continue
        elif word in _PYTEST_VALUES:
            at += 1
        elif not word.startswith("-"):
            targets.append(word)
    return TestRun(runner, tuple(targets), " ".join(selected), simple.raw, simple.cwd, simple.times)


def _unittest(arguments: list[str], simple: Simple) -> TestRun:
    targets: list[str] = []
    values = {"-k", "-s", "-p", "-t", "--start-directory", "--pattern", "--top-level-directory", "-d"}
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word in values:
            if word in ("-s", "--start-directory"):
                targets.extend(arguments[at : at + 1])
            at += 1
        elif not word.startswith("-") and word != "discover":
            dotted = "/" not in word and not word.endswith(".py")
            targets.append(word.replace(".", "/") if dotted else word)
    return TestRun("unittest", tuple(targets), "", simple.raw, simple.cwd, simple.times)


def _sessions(program: str, arguments: list[str], simple: Simple) -> TestRun | None:
    """Return a tox or nox run: paths after ``--`` are its targets; sessions that only lint are no test run."""
    if any(word in ("-l", "--list", "-a", "--listenvs", "--version", "--help", "-h") for word in arguments):
        return None
    rest = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    names = " ".join(
        own[at + 1] for at, word in enumerate(own[:-1]) if word in ("-e", "-s", "--session", "--sessions", "-env")
    )
    names += " ".join(word[2:].lstrip("=") for word in own if word.startswith(("-e", "-s")) and len(word) > 2)
    if names and _LINT_NAME.search(names) and not _TARGET_NAME.search(names):
        return None
    inner = _pytest(rest, simple)
    targets = inner.targets if inner else ()
    return TestRun(program, targets, inner.selected if inner else "", simple.raw, simple.cwd, simple.times)


def _named(program: str, arguments: list[str], simple: Simple) -> TestRun | None:
    """Return a run of a named target such as ``make test-all``."""
    if any(word in ("-n", "--dry-run", "--just-print", "--list", "-l") for word in arguments):
        return None
    names = [word for word in arguments if not word.startswith("-") and "=" not in word and word != "run"]
    if hits := [name for name in names if _TARGET_NAME.search(name) and not _LINT_NAME.search(name)]:
        return TestRun(f"{program} {hits[0]}", (), "", simple.raw, simple.cwd, simple.times)
    return None


def _python(arguments: list[str], simple: Simple) -> TestRun | None:
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] not in ("-m", "-c", "-"):
        at += 2 if arguments[at] in ("-W", "-X") else 1
    if at >= len(arguments):
        code = simple.heredoc
    elif arguments[at] == "-m" and at + 1 < len(arguments):
        return _module(arguments[at + 1], arguments[at + 2 :], simple)
    elif arguments[at] == "-c" and at + 1 < len(arguments):
        code = arguments[at + 1]
    elif arguments[at] == "-":
        code = simple.heredoc
    else:
        script = arguments[at]
        if posixpath.basename(script) == "setup.py" and "test" in arguments:
            return TestRun("setup.py", (), "", simple.raw, simple.cwd, simple.times)
        if posixpath.basename(script) == "manage.py" and "test" in arguments:
            targets = [word.replace(".", "/") for word in arguments[at + 2 :] if not word.startswith("-")]
            return TestRun("manage.py", tuple(targets), "", simple.raw, simple.cwd, simple.times)
        if _TEST_FILE.search(script):
            return TestRun("script", (script,), "", simple.raw, simple.cwd, simple.times)
        code = ""
    if _PY_MAIN.search(code[:4_000]):
        # The tests it names stand in code: what looks like a test path there is taken for one.
        targets = re.findall(r"['\"]([\w./-]*tests?[\w./-]*)['\"]", code[:4_000])
        named = tuple(target for target in targets if target not in ("pytest", "unittest"))
        return TestRun("pytest", named, "", simple.raw, simple.cwd, simple.times)
    return None


def _module(module: str, arguments: list[str], simple: Simple) -> TestRun | None:
    if module in ("pytest", "py.test"):
        return _pytest(arguments, simple)
    if module == "unittest":
        return _unittest(arguments, simple)
    if module in ("tox", "nox"):
        return _sessions(module, arguments, simple)
    if module in ("nose", "nose2", "doctest", "trial", "twisted.trial"):
        targets = tuple(word for word in arguments if not word.startswith("-"))
        return TestRun(module, targets, "", simple.raw, simple.cwd, simple.times)
    if module.startswith(("test.", "tests.")) or module in ("test", "tests"):
        return TestRun("module", (module.replace(".", "/"),), "", simple.raw, simple.cwd, simple.times)
    return None


def test_run(simple: Simple) -> TestRun | None:
    """Return the test run that *simple* is, or None. Listing and collecting tests is no run."""
    program, arguments = simple.program, list(simple.words[1:])
    if program in _PYTEST:
        return _pytest(arguments, simple)
    if program in ("python", "pypy"):
        return _python(arguments, simple)
    if program in ("tox", "nox"):
        return _sessions(program, arguments, simple)
    if program in _MAKERS:
        return _named(program, arguments, simple)
    if program in _PACKAGE or (program in ("hatch", "pdm", "rye", "poetry") and arguments[:1] == ["test"]):
        if program in ("hatch", "rye") and arguments[:1] == ["test"]:
            return _pytest(arguments[1:], simple, program)
        return _named(program, arguments, simple)
    if program in ("cargo", "go", "mvn", "gradle", "gradlew", "dotnet", "swift", "mix", "bazel", "ctest"):
        return (
            TestRun(program, (), "", simple.raw, simple.cwd, simple.times)
            if program == "ctest" or "test" in arguments
            else None
        )
    if program in ("jest", "vitest", "mocha", "phpunit", "rspec", "nosetests", "green", "ward", "trial"):
        targets = tuple(word for word in arguments if not word.startswith("-"))
        return TestRun(program, targets, "", simple.raw, simple.cwd, simple.times)
    if _TEST_FILE.search(simple.words[0] if simple.words else ""):
        return TestRun("script", (simple.words[0],), "", simple.raw, simple.cwd, simple.times)
    return None


test_run.__test__ = False  # type: ignore[attr-defined]


def within(run: TestRun, allowed: list[str]) -> bool:
    """Return whether every test that *run* names lies in *allowed* (test files, folders or ids).

    A run that names none reaches beyond, unless a ``cd`` into an allowed folder came before it. Absolute paths are
    compared by their tail, so that the place of the workspace does not matter.
    """
    if not run.targets:
        return bool(run.cwd) and _inside(run.cwd, allowed)
    joined = [posixpath.normpath(posixpath.join(run.cwd, target)) if run.cwd else target for target in run.targets]
    return all(
        _inside(full, allowed) or _inside(target, allowed) for full, target in zip(joined, run.targets, strict=True)
    )


def _inside(target: str, allowed: list[str]) -> bool:
    target = _plain(target)
    dotted = target if target.endswith(".py") or ".py::" in target else None
    for entry in allowed:
        bound = _plain(entry)
        candidates = [bound] if dotted else [bound, bound.removesuffix(".py")]
        for candidate in candidates:
            if not candidate:
                return True
            tail = target
            if target.startswith("/"):
                marker = target.find("/" + candidate)
                tail = target[marker + 1 :] if marker >= 0 else target
            if tail == candidate or tail.startswith((candidate + "/", candidate + "::", candidate + "[")):
                return True
    return False
