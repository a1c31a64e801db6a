"""A command-line agent as judge: it reads the read-only dossier in a sandbox and answers with its last message."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pytest_paranoia import registry
from pytest_paranoia.acting import PRIVATE, equipped
from pytest_paranoia.agents.base import AgentChoice, AgentContext, AgentSession, Recorder, UserMessage
from pytest_paranoia.agents.cli.base import Command
from pytest_paranoia.agents.cli.codex import HARNESS as CODEX
from pytest_paranoia.agents.cli.codex import CodexSession
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.judging.case import PairCase
from pytest_paranoia.judging.llm.dossier import Dossier
from pytest_paranoia.judging.llm.prompt import SUBMIT, Told
from pytest_paranoia.judging.llm.talk import Answer, Log
from pytest_paranoia.judging.llm.tools import DOSSIER, dossier_spec
from pytest_paranoia.judging.llm.verify import answer_schema
from pytest_paranoia.judging.llm.way import Way

if TYPE_CHECKING:
    from pytest_paranoia.judging.llm.settings import JudgeSettings

HARNESSES = ("claude-code", "codex")
_HOW = (
    "The dossier is the folder {folder}: read it there; it cannot be changed, and nothing in it is to be run. Your "
    "last message is your verdict: the JSON object alone, without a word before or after it."
)


class CliPartner:
    """One dialogue with a command-line agent: each message runs its program once, in the same session."""

    def __init__(self, dossier: Dossier, settings: JudgeSettings, way: Way, deadline: float, log: Log) -> None:
        self._dossier = dossier
        self._settings = settings
        self._way = way
        self._deadline = deadline
        self._log = log
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self, told: Told) -> Answer:
        """Bring up the sandbox and send rules and case; see ``Partner``."""
        means, choice = self._dossier.case.means, self._settings.choice
        assert means is not None
        harness = registry.harness(choice.harness)
        spec = equipped(dossier_spec(means, self._dossier), harness, choice, means.scratch)
        environment = means.provider.create(spec)
        self._stack.callback(environment.stop)
        environment.start()
        if not environment.isolated:
            raise InfrastructureError("judge-sandbox", f"{choice.name} judges in an isolated environment only")
        info = harness.info(choice)
        self._recorder = Recorder(info)
        self._limits: list[str] = []
        context = AgentContext(
            agent=info,
            variant=None,
            environment=environment,
            recorder=self._recorder,
            deadline=self._deadline,
            choice=_bounded(self._settings),
            model_url=self._way.open(environment.listen()),
            private=means.scratch / PRIVATE,
            limits=self._limits,
        )
        schema = answer_schema(isinstance(self._dossier.case, PairCase))
        self._session: AgentSession = (
            _CodexJudge(CODEX, context, schema) if choice.harness == "codex" else harness.open(context)
        )
        self._stack.callback(self._session.close)
        case = told.case.replace(f", then call {SUBMIT} once with your verdict.", ", then answer with your verdict.")
        how = _HOW.format(folder=environment.locate(means.scratch / DOSSIER))
        return self._say(f"{told.system}\n{case.replace(' with the tools', '')}\n\n{how}")

    def again(self, text: str) -> Answer:
        """Send the verdict back; see ``Partner``."""
        return self._say(text)

    def _say(self, text: str) -> Answer:
        before = len(self._recorder)
        self._log.add("user", text)
        message = UserMessage("task", text)
        self._recorder.user(message)
        try:
            self._session.message(message)
        except InfrastructureError as error:
            if error.reason == "max-turns":
                raise InfrastructureError("judge-loop", str(error)) from error
            if error.reason == "wall-clock":
                raise InfrastructureError("judge-timeout", str(error)) from error
            raise
        trajectory = self._recorder.trajectory()
        assert trajectory is not None
        steps = [step for step in trajectory.steps[before:] if step.source == "agent"]
        for step in steps:
            calls = [{"name": call.function_name, "arguments": call.arguments} for call in step.tool_calls or ()]
            self._log.add("judge", step.text, calls=calls)
            for result in step.observation.results if step.observation else ():
                shown = result.content if isinstance(result.content, str) else json.dumps(str(result.content))
                self._log.add("tool", shown or "", call=result.source_call_id)
        self._log.turns += len(steps)
        return next((step.text for step in reversed(steps) if step.text.strip()), "")


def _bounded(settings: JudgeSettings) -> AgentChoice:
    return replace(settings.choice, max_turns=settings.max_turns)


class _CodexJudge(CodexSession):
    """Codex, told the shape of its last message."""

    def __init__(self, harness: object, context: AgentContext, schema: dict[str, object]) -> None:
        self._schema = schema
        super().__init__(harness, context)  # type: ignore[arg-type]

    def configure(self) -> None:
        """Write the schema beside the configuration."""
        super().configure()
        self._schema_path = self.write("verdict.schema.json", json.dumps(self._schema))

    def command(self, text: str) -> Command:
        """Return the command with the schema."""
        command = super().command(text)
        at = list(command.argv).index("--json")
        argv = [*command.argv[:at], "--output-schema", self._schema_path, *command.argv[at:]]
        return Command(argv, command.env, command.stdin)
