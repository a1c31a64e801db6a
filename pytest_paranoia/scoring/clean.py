"""A clean room: the start tree plus an agent's frozen changes, in an environment no process of the agent ever saw."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pytest_paranoia.environments.base import Environment, EnvironmentProvider, ExecResult, Limits
from pytest_paranoia.scoring import probes
from pytest_paranoia.scoring.pinned import below, decides_tests, restore
from pytest_paranoia.scoring.sabotage import exposed, file_of, spoil
from pytest_paranoia.workspaces import laying
from pytest_paranoia.workspaces.freezing import FrozenTree
from pytest_paranoia.workspaces.spares import SPARES, Loan
from pytest_paranoia.workspaces.stage import Stage

CHECK_LIMITS = Limits(wall_clock=120.0)
_ENDED = {0: "passed", 1: "failed", 5: "found none"}

Prepare = Callable[[Path], None]


class NoAnswer(Exception):
    """Code of the agent gave nothing that can be used: the message says why."""


class CleanRoom:
    """One clean sandbox at a time, brought up on first use.

    Code under test may leave processes behind, and what a process of the agent can see we must not write to: it could
    turn a folder into a link under our hands. So a workspace is laid before its sandbox starts, and never again.
    """

    def __init__(self, provider: EnvironmentProvider, stage: Stage, frozen: FrozenTree, scratch: Path) -> None:
        self._provider = provider
        self._stage = stage
        self._frozen = frozen
        self._folder = scratch / "room"
        self._environment: Environment | None = None
        self._loan: Loan | None = None
        self.missing: list[str] = []
        self.forged: list[str] = []
        """What only code made to deceive or to end the check does, in words."""
        self.spent = 0.0
        """Seconds that code under test has taken."""
        self.timed_out = False
        """Whether some command hit its time limit."""

    def _open(self, prepare: Prepare | None = None) -> Environment:
        """Bring up a new room with the final tree, which *prepare* may alter."""
        self.close()
        self._folder.mkdir()
        workspace = self._folder / "workspace"
        self._loan = SPARES.take("check", self._stage.start, workspace, self._provider.owner)
        self.missing = laying.apply(self._frozen.frozen.changes, self._frozen.contents, workspace)
        if prepare is not None:
            prepare(workspace)
        self._environment = self._provider.create(self._stage.spec(workspace, self._folder, CHECK_LIMITS))
        self._environment.start()
        return self._environment

    def _final(self) -> Environment:
        """Return the room with the final tree, as earlier commands left it."""
        return self._environment or self._open()

    def close(self) -> None:
        """End the sandbox and remove its folder."""
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.stop()
            if self._loan is not None and environment.isolated:
                SPARES.give_back(self._loan)
        laying.remove_tree(self._folder)

    def run(self, argv: Sequence[str], stdin: bytes, timeout: float) -> ExecResult:
        """Run a command on the final tree. Commands see what earlier ones did until ``close``."""
        return self._exec(self._final(), argv, stdin, timeout)

    def _exec(self, environment: Environment, argv: Sequence[str], stdin: bytes, timeout: float) -> ExecResult:
        result = environment.exec(argv, stdin=stdin, timeout=timeout)
        self.spent += result.seconds
        if result.limit in ("processes", "memory"):
            self.forged.append(f"the check of it hit the limit {result.limit!r}")
        self.timed_out = self.timed_out or result.limit == "wall-clock"
        return result

    def python(self, source: str, args: list[Any], timeout: float) -> Any:
        """Run a snippet and return its value. Raises NoAnswer."""
        boxed, result = self._probe(self._final(), probes.PROBE, {"source": source, "args": args}, timeout)
        if not isinstance(boxed, list) or len(boxed) != 1:
            raise NoAnswer(_why(result, "the probe gave no value: it must call emit(value)"))
        return boxed[0]

    def tests(self, targets: list[str], deselect: list[str], own: list[str], timeout: float) -> dict[str, Any]:
        """Run tests of the pinned revision (of the final tree those below *own*), twice. Raises NoAnswer.

        The second time some of those that passed were made to fail; they have to.
        """

        def pin(workspace: Path) -> None:
            start = self._stage.start
            restore(start, workspace, lambda path: decides_tests(path, targets) and not below(path, own))

        outcomes, output = self._outcomes(self._open(pin), targets, deselect, timeout)
        passed = [nodeid for nodeid, outcome in outcomes.items() if outcome == "passed"]
        if passed:
            spoilt: list[str] = []

            def pin_and_spoil(workspace: Path) -> None:
                pin(workspace)
                spoilt.extend(spoil(workspace, passed))

            environment = self._open(pin_and_spoil)
            added = {file_of(name) for name in spoilt} - {file_of(nodeid) for nodeid in passed}
            again, _ = self._outcomes(environment, [*targets, *added], deselect, timeout)
            wrong = [found for name in spoilt if (found := exposed(name, outcomes, again))]
            if wrong:
                raise self._forged(f"the test run cannot be trusted: {wrong[0]}")
        return {"outcomes": outcomes, "output": output[-8000:]}

    def _outcomes(
        self, environment: Environment, targets: list[str], deselect: list[str], timeout: float
    ) -> tuple[dict[str, str], str]:
        arguments = [
            "-q",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            "--import-mode=append",
            "--no-header",
        ]
        arguments += [f"--rootdir={environment.workspace}", *(f"--deselect={name}" for name in deselect), *targets]
        try:
            value, result = self._probe(environment, probes.TESTS, {"arguments": arguments}, timeout)
        finally:
            self.close()
        output = result.stderr.decode("utf-8", "replace")  # stdout is the answer's alone
        try:
            outcomes = {_name(name): str(outcome) for name, outcome in value["outcomes"].items()}
            absent = [name for name in map(_name, value["collected"]) if name not in outcomes]
            status = int(value["exit"])
        except (TypeError, KeyError, ValueError, AttributeError):
            raise NoAnswer(_why(result, "the test run gave no result")) from None
        # A test that ends the session early leaves the others without a word: they did not pass.
        outcomes.update(dict.fromkeys(absent, "error"))
        if status not in _ENDED and not any(outcome == "error" for outcome in outcomes.values()):
            raise NoAnswer(f"the test run ended early, with status {status}: {output[-1500:]}")
        return outcomes, output

    def _probe(
        self, environment: Environment, program: str, payload: dict[str, Any], timeout: float
    ) -> tuple[Any, ExecResult]:
        """Run one of the two programs. Returns the value that came back, None where there is none."""
        mark = secrets.token_hex(16)
        parts = self._stage.pythonpath or (".",)
        spec = {
            "mark": mark,
            "roots": [environment.workspace if part == "." else f"{environment.workspace}/{part}" for part in parts],
            "site": [environment.locate(self._stage.site_packages)],
            "packages": list(self._stage.packages),
            **payload,
        }
        argv = [environment.locate(self._stage.python), "-I", "-S", "-c", program]
        result = self._exec(environment, argv, json.dumps(spec).encode(), timeout)
        answers = [line for line in result.stdout.split(b"\n") if line.startswith(mark.encode())]
        if not answers:
            return None, result
        if len(answers) > 1:
            raise self._forged("the probe answered twice")
        try:
            value = json.loads(answers[0][len(mark) :], parse_constant=_refuse)
            # What cannot be said again (nested too deep, for example) cannot be handed on.
            json.dumps(value)
        except (ValueError, RecursionError) as error:
            raise NoAnswer(f"the probe's value cannot be used: {error}") from None
        return value, result

    def _forged(self, said: str) -> NoAnswer:
        self.forged.append(said)
        return NoAnswer(said)


def _name(nodeid: Any) -> str:
    """Return a node id that can be a path; the code under test may have made it up."""
    text = str(nodeid).encode("utf-8", "replace").decode("utf-8")
    if "\0" in text:
        raise ValueError("no node id")
    return text


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _why(result: ExecResult, otherwise: str) -> str:
    if result.limit:
        return f"limit {result.limit!r} hit after {result.seconds:.1f} s"
    text = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
    return probes.without_value(result.exit_code, text) if result.exit_code or text else otherwise
