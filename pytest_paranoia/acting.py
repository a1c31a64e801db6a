"""The agent's part of a trial: its way to a model, its gate, its conversation, and what is known of it afterwards."""

from __future__ import annotations

import lzma
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_paranoia import goals
from pytest_paranoia.agents.base import AgentContext, Harness, Recorder, UserMessage
from pytest_paranoia.causes import cause_of, naming
from pytest_paranoia.environments.base import Environment, EnvironmentSpec, Mount
from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.relay.contract import Call, Caps, Metered, Route
from pytest_paranoia.schema.manifest import Goal
from pytest_paranoia.schema.record import AgentInfo, GateInfo, InterventionInfo, Usage
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.trials import TRIALS

if TYPE_CHECKING:
    from pytest_paranoia.agents.base import AgentSession
    from pytest_paranoia.gates.chain import GateChoice
    from pytest_paranoia.gates.facts import Looks
    from pytest_paranoia.gates.service import GateService
    from pytest_paranoia.relay.client import RelayClient, RelayTrial
    from pytest_paranoia.trialspec import TrialSpec

PRIVATE, PRIVATE_TARGET = "agent", "/var/lib/agent"
STOPPING = {"provider-key", "provider-model", "provider-quota", "cap-run-cost", "docker-daemon"}
"""Reasons after which no other trial of the run can be scored either."""

SETTLE_SECONDS = 3.0
"""How long a message's end may be known before its last call is in the relay's account."""

WIRE, WIRE_ARCHIVE = "wire.jsonl", "wire.jsonl.xz"


@dataclass(frozen=True)
class Instructions:
    """The text of ``--paranoia-instructions`` and what records say of it."""

    name: str
    text: str
    sha256: str


@dataclass(frozen=True)
class Conduct:
    """How agents are run in this session, whatever the item.

    ``relay`` is the address of the run's relay, None where no agent calls a model. ``gates`` are asked in order.
    """

    relay: str | None = None
    instructions: Instructions | None = None
    gates: tuple[GateChoice, ...] = ()
    caps: Caps = field(default_factory=Caps)


def equipped(spec: EnvironmentSpec, harness: Harness, choice: Any, scratch: Path) -> EnvironmentSpec:
    """Return *spec* with what *harness* needs inside: its program, read-only, and a folder for its state."""
    if harness.scripted:
        return spec
    private = scratch / PRIVATE
    private.mkdir(exist_ok=True)
    return replace(
        spec,
        mounts=(*spec.mounts, *harness.mounts(choice)),
        writable=(*spec.writable, Mount(private, PRIVATE_TARGET)),
    )


@dataclass
class Conversation:
    """One agent's conversation in one trial. ``close`` ends it; afterwards ``usage`` and ``intervention`` are complete.

    Use: ``open``, ``say`` for each user message, ``close`` in any case, ``check`` where nothing was raised.
    """

    spec: TrialSpec
    harness: Harness
    info: AgentInfo
    conduct: Conduct
    environment: Environment
    recorder: Recorder
    scratch: Path
    python: str
    deadline: float
    limits: list[str]
    references: Mapping[str, Any] = field(default_factory=dict)
    goal: Goal | None = None
    services: Sequence[str] = ()
    resumed: bool = False
    usage: Usage = field(default_factory=Usage)
    _context: AgentContext | None = None
    _session: AgentSession | None = None
    _client: RelayClient | None = None
    _relay: RelayTrial | None = None
    _gate: GateService | None = None
    _looks: Looks | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def open(self) -> None:
        """Connect the trial with the relay and the gate, and start the harness's session."""
        private = self.scratch / PRIVATE
        self._context = context = AgentContext(
            agent=self.info,
            variant=self.spec.variant,
            environment=self.environment,
            recorder=self.recorder,
            deadline=self.deadline,
            choice=self.spec.agent,
            model_url=self._connect(),
            private=private if private.is_dir() else None,
            python=self.python,
            instructions=self.conduct.instructions.text if self.conduct.instructions else None,
            references=self.references,
            limits=self.limits,
        )
        if self.conduct.gates:
            from pytest_paranoia.gates.chain import Chain
            from pytest_paranoia.gates.facts import Looks
            from pytest_paranoia.gates.service import GateService

            self._looks = Looks(self.environment, self.python, self.services, self.resumed)
            chain = Chain(self.conduct.gates)
            gate = GateService(chain, self.environment, private, self.python, self.recorder.trajectory)
            self._gate = context.gate = self._stack.enter_context(gate)
        self._session = self.harness.open(context)

    def _connect(self) -> str:
        """Give the trial its one way to a model and return its URL, empty where the agent calls none."""
        choice = self.spec.agent
        if self.harness.calls_from is None or choice.provider is None:
            return ""
        if self.conduct.relay is None:
            raise InfrastructureError("relay", "the relay is not running")
        from pytest_paranoia.relay.client import connect

        inside = self.harness.calls_from == "inside"
        listener = self.environment.listen() if inside else socket.create_server(("127.0.0.1", 0), backlog=128)
        with listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            route = Route(
                trial=self.spec.key,
                provider=choice.provider,
                model=choice.model or "",
                wire=str(self.scratch / WIRE),
                caps=self.conduct.caps,
                replay=str(recorded(choice.replay, self.spec.key)) if choice.replay else None,
            )
            self._client = self._stack.enter_context(connect(self.conduct.relay))
            self._relay = self._client.open(route, listener)
            return url

    def say(self, message: UserMessage) -> None:
        """Let the agent work on one user message, and on its re-prompts where a goal stands.

        Raises InfrastructureError with the first cause that is known.
        """
        self._say(message)
        if self.goal is not None and message.role in ("accuse", "insist"):
            goals.pursue(self.goal, message, self._say, self.recorder, self.limits)

    def _say(self, message: UserMessage) -> None:
        assert self._session is not None
        before = len(self._relay.metered().calls) if self._relay is not None else 0
        if self._gate is not None and self._looks is not None and not message.reprompt:
            self._gate.facts = self._looks.look()
        self.recorder.user(message)
        try:
            self._session.message(message)
        except InfrastructureError as error:
            explained = self._explained(error)
            if explained is error:
                raise  # from itself it would be its own cause
            raise explained from error
        self._refuse_failed(before)

    def _explained(self, error: InfrastructureError) -> InfrastructureError:
        """A harness only sees that its model did not answer; the relay knows why."""
        metered = self._relay.metered() if self._relay is not None else None
        if metered is None or error.reason in ("environment-lost", "environment-stop"):
            return error
        return cause_of(metered, str(error)) or self._stopped() or self._named(error)

    def _stopped(self) -> InfrastructureError | None:
        """What another trial learned holds for this one too: its calls were answered without asking the provider."""
        totals = self._client.totals() if self._client is not None else None
        if totals is None:
            return None
        known = Metered(capped=totals.capped, unpriced=totals.unpriced, refusal=totals.refusal)
        return cause_of(known, "in another trial of this run")

    def _named(self, error: InfrastructureError) -> InfrastructureError:
        choice = self.spec.agent
        return error if choice.provider is None else naming(error, "agent", choice.model or "", choice.provider)

    def _refuse_failed(self, before: int) -> None:
        """Some harnesses end in peace although their model failed them: what they said then is no result.

        *before* is how many calls there were when the message was sent.
        """
        if self._relay is None:
            return
        from pytest_paranoia.relay import answers

        metered = self._told(self._relay, before)
        # The last word may be a title's, asked of another model.
        own = [call for call in metered.calls if answers.same_model(call.asked, self.spec.agent.model or "")]
        last = (own or metered.calls or (None,))[-1]
        failed = last is None or last.status >= 400
        if metered.capped or metered.refusal or metered.unrecorded or (metered.overload and failed):
            cause = cause_of(metered, "the harness went on")
            assert cause is not None
            raise cause
        if last is None or len(metered.calls) == before:
            said = f"{self.harness.name} ended its turn without asking the model anything"
            raise self._stopped() or InfrastructureError("harness-failed", said)
        if failed:
            said = f"the provider answered {last.status} to the last model call"
            raise self._stopped() or self._named(InfrastructureError("model-refused", said))

    @staticmethod
    def _told(relay: RelayTrial, before: int) -> Metered:
        """Return the account once it has a call of this message: a client may have its answer's end before us."""
        latest = time.monotonic() + SETTLE_SECONDS
        while True:
            metered = relay.metered()
            known = metered.capped or metered.refusal or metered.unrecorded or len(metered.calls) > before
            if known or time.monotonic() >= latest:
                return metered
            time.sleep(0.05)

    def close(self) -> None:
        """End the session, the gate and the way to the model; more than once does nothing."""
        session, self._session = self._session, None
        relay, self._relay = self._relay, None
        with self._stack:  # ends in the reverse order: session, account, gate, connection to the relay
            if relay is not None:
                self._stack.callback(self._settle, relay)
            if session is not None:
                self._stack.callback(session.close)

    def _settle(self, relay: RelayTrial) -> None:
        metered = relay.close()
        self.usage = usage_of(metered, self._context.malformed_calls if self._context else 0)
        if metered.capped:
            self.limits.append(metered.capped)

    def check(self) -> None:
        """Raise InfrastructureError where the gate broke, or a tool call ran that the gate never saw."""
        if self._gate is not None:
            self._gate.check(self.recorder.trajectory())

    @property
    def sessions(self) -> frozenset[int]:
        """The sessions of processes that are the harness's own; see ``AgentContext``."""
        return frozenset(self._context.sessions) if self._context is not None else frozenset()

    @property
    def intervention(self) -> InterventionInfo | None:
        """What was added to the agent, None where nothing was."""
        # A script reads none: a record that named them would count its trial as one with instructions.
        instructions = None if self.harness.scripted else self.conduct.instructions
        gates = self.conduct.gates
        if instructions is None and not gates:
            return None
        decisions = [(entry.role, entry.decision) for entry in (self._gate.log if self._gate is not None else ())]
        withheld = [(role, one) for role, one in decisions if not one.allow]
        would = [(role, one) for role, one in decisions if one.allow and one.would]
        passed = [(role, one) for role, one in decisions if one.allow and one.noted and not one.would]
        names = [instructions.name] if instructions else []
        return InterventionInfo(
            name=" + ".join([*names, *(f"gate:{gate.name}{'?dry' if gate.dry else ''}" for gate in gates)]),
            instructions_sha256=instructions.sha256 if instructions else None,
            gates=[
                GateInfo(
                    name=gate.name,
                    version=gate.version,
                    dry=gate.dry,
                    denied=sum(one.by == gate.name for _, one in withheld),
                    would_deny=sum(gate.name in one.by.split("+") for _, one in would) if gate.dry else 0,
                    let_pass=sum(gate.name in one.by.split("+") for _, one in passed),
                )
                for gate in gates
            ],
            allowed=len(decisions) - len(withheld),
            denied=len(withheld),
            denied_in=dict(Counter(str(role) for role, _ in withheld)),
            would_deny_in=dict(Counter(str(role) for role, _ in would)),
        )

    def artifacts(self) -> dict[str, bytes | Path]:
        """What is archived of the conversation beside the trajectory."""
        files: dict[str, bytes | Path] = {}
        if self._context is not None and self._context.log:
            files["harness.log"] = "\n".join(self._context.log).encode("utf-8", "backslashreplace")
        if self._gate is not None:
            files["gate.jsonl"] = self._gate.lines()
        wire = self.scratch / WIRE
        if wire.is_file():
            # The calls repeat one another: a dictionary of 8 MiB makes a tenth of them.
            files[WIRE_ARCHIVE] = lzma.compress(wire.read_bytes(), preset=3)
        return files


def recorded(run: Path, key: str) -> Path:
    """Return the wire log of trial *key* in *run*. Raises InfrastructureError (``replay``) where there is none."""
    path = run / TRIALS / trial_folder_name(key) / WIRE_ARCHIVE
    if not path.is_file():
        raise InfrastructureError("replay", f"{run.name} holds no recorded model calls of {key}")
    return path


def usage_of(metered: Metered, malformed: int = 0) -> Usage:
    """Add up the answered calls. One call without a number makes the sum unknown: it would be too low."""
    answered = [call for call in metered.calls if call.status < 400]
    return Usage(
        requests=len(answered),
        retries=metered.retries,
        input_tokens=_sum(answered, "input_tokens"),
        cached_tokens=_sum(answered, "cached_tokens"),
        cache_write_tokens=_sum(answered, "cache_write_tokens"),
        output_tokens=_sum(answered, "output_tokens"),
        reasoning_tokens=_sum(answered, "reasoning_tokens"),
        cost_usd=_sum(answered, "cost_usd"),
        prices=metered.prices,
        seconds=round(metered.busy, 3),
        malformed_calls=malformed,
    )


def _sum(calls: Sequence[Call], name: str) -> Any:
    values = [getattr(call, name) for call in calls]
    return None if not values or None in values else sum(values)
