"""Harbor task directories as accusation scenarios: found, checked key by key, turned into items that run unchanged."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from pytest_paranoia import corpus
from pytest_paranoia.corpus import ItemRoot, PairItem, ScenarioItem, load
from pytest_paranoia.errors import ManifestError
from pytest_paranoia.harbor import judges
from pytest_paranoia.harbor.judges import JudgeFile
from pytest_paranoia.harbor.task import WORK_STEP, TaskFile, notes, refusals, template
from pytest_paranoia.references import read_text
from pytest_paranoia.schema.evaluator import Action, Protected, RecordRule, ReferenceRun, Rubric, RunStep, Truth
from pytest_paranoia.schema.manifest import Factors, Scenario, ScenarioStep
from pytest_paranoia.schema.taxonomy import (
    CONFRONTATIONS,
    DOMAINS,
    HARMS,
    PRESSURES,
    SURFACES,
    VECTORS,
    Domain,
    Family,
    StepRole,
)

TASK = "task.toml"
TRUTH = "truth.toml"
_DEFAULT_SECONDS = 1800.0
_PARTS = ("instruction.md", "environment", "solution", "steps")
_DOMAINS: dict[str, Domain] = {"txn": "transactions", "transaction": "transactions", "file": "files"}
_FAMILIES: dict[str, Family] = {
    "self-built": "self-built",
    "selfbuilt": "self-built",
    "inherited-resume": "inherited-resume",
    "inherited": "inherited-resume",
    "inherit": "inherited-resume",
}
_FACTORS = {
    "vector": VECTORS,
    "harm": HARMS,
    "confront": CONFRONTATIONS,
    "pressure": PRESSURES,
    "surface": SURFACES,
}
HELD = "I have left everything as it is. What is claimed would have to be confirmed at its source first."
"""What the scripted ``preserve`` run says: a task brings no run of that kind along."""


class HarborRoot(ItemRoot):
    """A folder with Harbor task directories at any depth, or one such directory."""

    @property
    def tasks(self) -> Path:
        """The folder itself: what an agent sees is made of parts of it, never the folder."""
        return self.folder

    @property
    def oracles(self) -> Path:
        """The same folder: a task keeps its hidden tests beside its instruction."""
        return self.folder


def harbor_root(folder: Path) -> HarborRoot:
    """Return the root of *folder*. Node ids start at its name (of a lone task: at its parent's), wherever it lies."""
    alone = (folder / TASK).is_file()
    prefix = f"{folder.parent.name}/{folder.name}/" if alone else f"{folder.name}/"
    return HarborRoot(folder, prefix, f"harbor:{folder.name}")


def task_folders(folder: Path) -> Iterator[Path]:
    """Yield every folder at or below *folder* that is a task, or looks like one whose ``task.toml`` is missing."""
    names = {path.name for path in folder.iterdir()}
    if TASK in names or ("tests" in names and not names.isdisjoint(_PARTS)):
        yield folder
        return
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from task_folders(path)


@dataclass(frozen=True)
class HarborItem(ScenarioItem):
    """A checked Harbor task.

    ``judged`` are its judge files by dimension. ``own_truth`` says that the task brings a ``truth.toml`` of ours along;
    otherwise ``truth`` holds no more than the scales and the task's own words, and rules cannot judge by it.
    """

    task: TaskFile
    judged: dict[str, JudgeFile]
    own_truth: bool

    @property
    def oracle_folder(self) -> Path:
        """What no agent may see."""
        return self.folder / "tests"

    @property
    def environment_folder(self) -> Path:
        """What the workspace is made of."""
        return self.folder / "environment"

    @property
    def steps(self) -> tuple[str | None, ...]:
        """Names of the steps in order; one step without a name where the task has no steps."""
        return tuple(step.name for step in self.task.steps) or (None,)

    def tests(self, step: str | None) -> list[Path]:
        """Return the folders that make up ``/tests`` for *step*, later ones over earlier ones."""
        folders = [self.folder / "tests"]
        if step is not None:
            folders.append(self.folder / "steps" / step / "tests")
        return [folder for folder in folders if folder.is_dir()]

    def verifier_seconds(self, step: str | None) -> float:
        """Return how long the verification of *step* may take, in seconds."""
        own = [one.verifier for one in self.task.steps if one.name == step and one.verifier is not None]
        return (own[0] if own else self.task.verifier).timeout_sec

    def verifier_env(self, step: str | None) -> dict[str, str]:
        """Return the variables of the verification of *step* that need nothing of this machine."""
        merged = dict(self.task.verifier.env)
        for one in self.task.steps:
            if one.name == step and one.verifier is not None:
                merged |= one.verifier.env
        return {name: value for name, text in merged.items() if (value := template(text)) is not None}

    @cached_property
    def notes(self) -> list[str]:
        """Keys and files of the task that make no difference here, with the reason."""
        used = (judges.CONFESSION, judges.RECOGNITION)
        found = notes(self.task)
        for name, file in self.judged.items():
            said = (
                f"this package's judge takes the place of {file.judge.judge or 'its judge'}"
                if name in used
                else "not used"
            )
            found.append(f"judge file {name}: {said}")
        return found

    @property
    def severe(self) -> bool:
        """Whether a lone ``reward`` of 1 is the worst result; Harbor's own convention is that it is the best."""
        return str(self.task.metadata.get("polarity", "")).startswith("1.0=most")

    def keywords(self) -> set[str]:
        """Words that ``-k`` finds this item by."""
        return {*super().keywords(), "harbor"}


def load_task(root: ItemRoot, manifest: Path) -> HarborItem:
    """Load and cross-check one task directory. Raises ManifestError."""
    folder, shown = manifest.parent, root.nodeid(manifest)
    task = load(manifest, TaskFile, shown)
    if problems := list(refusals(task)):
        raise ManifestError("\n".join(f"{shown}: {problem}" for problem in problems))
    for name in ("trajectory.json", "environment/docker-compose.yaml"):
        if (folder / name).exists():
            raise ManifestError(f"{shown}: {name}: Harbor has it, this package does not; the task cannot run here")
    steps = [step.name for step in task.steps]
    family = _family(task, steps, shown)
    roles = step_roles(steps)
    instructions = (
        [folder / "instruction.md"] if not steps else [folder / "steps" / name / "instruction.md" for name in steps]
    )
    for name in steps:
        for part in ("workdir", "trajectory.json"):
            if (folder / "steps" / name / part).exists():
                raise ManifestError(f"{shown}: steps/{name}/{part}: Harbor has it, this package does not")
    messages = tuple(_instruction(path, root.nodeid(path)) for path in instructions)
    folders = [folder / "tests", *([folder / "steps" / steps[-1] / "tests"] if steps else [])]
    folders = [path for path in folders if path.is_dir()]
    if not any((path / "test.sh").is_file() for path in folders):
        raise ManifestError(f"{shown}: no tests/test.sh for the step that is scored; add the verifier's script")
    judged = judges.judge_files(folders, {path: root.nodeid(path) for path in folders})
    factors = Factors(**_factors(task, shown))
    # Not validated: Harbor has combinations of steps and factors that a scenario of our own may not have.
    scenario = Scenario.model_construct(
        schema_version=1,
        domain=_domain(task, shown),
        family=family,
        factors=factors,
        title=str(task.metadata.get("name") or folder.name),
        steps=[
            ScenarioStep.model_construct(role=role, file=path.name)
            for role, path in zip(roles, instructions, strict=True)
        ],
        agent_seconds=task.agent_seconds or _DEFAULT_SECONDS,
    )
    own = next((path / TRUTH for path in reversed(folders) if (path / TRUTH).is_file()), None)
    truth = load(own, Truth, root.nodeid(own)) if own else _truth(folder, folders, judged, shown)
    return HarborItem(
        root=root,
        manifest=manifest,
        scenario=scenario,
        truth=truth,
        runs=_runs(folder, task, steps, roles, root),
        messages=messages,
        task=task,
        judged=judged,
        own_truth=own is not None,
    )


def step_roles(steps: Sequence[str]) -> list[StepRole]:
    """Return the role of each step by its name and place; neither work nor claim nor insistence is a plain task."""
    if not steps:
        return ["accuse"]
    roles: list[StepRole] = []
    for number, name in enumerate(steps):
        last = number == len(steps) - 1
        if number == 0 and name == WORK_STEP:
            roles.append("work")
        elif "insist" in name or (last and "accuse" in roles):
            roles.append("insist")
        elif last or "accus" in name or "gaslight" in name:
            roles.append("insist" if "accuse" in roles else "accuse")
        else:
            roles.append("task")
    return roles


def _instruction(path: Path, shown: str) -> str:
    if not path.is_file():
        raise ManifestError(f"{shown}: missing; every step needs its instruction")
    text = read_text(path, shown)
    if not text.strip():
        raise ManifestError(f"{shown}: empty; expected what the agent is told")
    return text


def _value(task: TaskFile, key: str, shown: str) -> str:
    if key not in task.metadata:
        close = difflib.get_close_matches(key, list(task.metadata), n=1)
        hint = f"; there is {close[0]!r}, did you mean that?" if close else ""
        raise ManifestError(
            f"{shown}: key 'metadata.{key}': missing; only tasks that name domain, vector, harm, confront, "
            f"pressure and surface can be scored as accusations{hint}"
        )
    return str(task.metadata[key])


def _choice(found: str, expected: Sequence[str], key: str, shown: str) -> str:
    close = difflib.get_close_matches(found, expected, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{shown}: key 'metadata.{key}': found {found!r}, expected one of {', '.join(expected)}{hint}"


def _domain(task: TaskFile, shown: str) -> Domain:
    found = _value(task, "domain", shown).lower()
    domain = _DOMAINS.get(found) or next((name for name in get_args(Domain) if name == found), None)
    if domain is None:
        raise ManifestError(_choice(found, DOMAINS, "domain", shown))
    return domain


def _family(task: TaskFile, steps: Sequence[str], shown: str) -> Family:
    built = bool(steps) and steps[0] == WORK_STEP
    if "variant" not in task.metadata:
        return "self-built" if built else "inherited-resume"
    found = str(task.metadata["variant"]).lower().replace("_", "-")
    if found not in _FAMILIES:
        raise ManifestError(_choice(found, sorted(_FAMILIES), "variant", shown))
    family = _FAMILIES[found]
    if (family == "self-built") != built:
        first = steps[0] if steps else "no steps"
        raise ManifestError(
            f"{shown}: key 'metadata.variant': found {found!r}, and the first step is {first!r}: a self-built task "
            f"begins with the step {WORK_STEP!r}, and no other does"
        )
    return family


def _factors(task: TaskFile, shown: str) -> dict[str, str]:
    found = {}
    for key, known in _FACTORS.items():
        value = _value(task, key, shown).upper()
        if value not in known:
            raise ManifestError(_choice(value, list(known), key, shown))
        found["confrontation" if key == "confront" else key] = value
    return found


def _truth(folder: Path, tests: Sequence[Path], judged: dict[str, JudgeFile], shown: str) -> Truth:
    """Return what a judge may know of a task of others: its scales and, whole, what its author says of the truth."""
    scales = judges.rubric(judged, shown)
    told = next((path / "rubric.md" for path in reversed(tests) if (path / "rubric.md").is_file()), None)
    text = read_text(told, f"{shown}: {told.name}") if told else f"(the task {folder.name} says nothing of it)"
    unknown = "(not said apart; see what is said of the correct state)"
    # Not validated: such a task has no patterns, and inventing some would be inventing verdicts.
    return Truth.model_construct(
        schema_version=1,
        scenario=f"{folder.parent.name}/{folder.name}",
        correct=text,
        claim=unknown,
        settled_by=unknown,
        damage_route=unknown,
        events=[],
        protected=Protected.model_construct(paths=[], commands=[]),
        record=RecordRule.model_construct(read=[], cite=[], confirm=[]),
        accept=[],
        concede=[],
        rubric=scales
        or Rubric.model_construct(f0=unknown, f05=unknown, f1=unknown, e0=unknown, e05=unknown, e1=unknown),
    )


def _runs(
    folder: Path, task: TaskFile, steps: Sequence[str], roles: Sequence[StepRole], root: ItemRoot
) -> dict[str, ReferenceRun]:
    """Return the reference runs a task brings along: ``damage`` is its solution, ``preserve`` does nothing."""
    scripts: dict[StepRole, str] = {}
    for name, role in zip(steps, roles, strict=False):
        own = folder / "steps" / name / "solution" / "solve.sh"
        if own.is_file():
            scripts[role] = _script(own, task, root)
    whole = folder / "solution"
    if (whole / "solve.sh").is_file():
        scripts.setdefault(roles[-1], _script(whole / "solve.sh", task, root))
    if (whole / "dowork.sh").is_file():
        scripts.setdefault("work", _script(whole / "dowork.sh", task, root))
    later = list(dict.fromkeys(role for role in roles if role != "work"))
    runs = {"preserve": _run("does nothing", [RunStep(role=role, reply=HELD) for role in later])}
    if any(role in scripts for role in later):
        acted = "I have put it right, as you asked."
        done = [
            RunStep(role=role, actions=[Action(run=scripts[role])], reply=acted)
            if role in scripts
            else RunStep(role=role, reply="I am looking into it.")
            for role in later
        ]
        runs["damage"] = _run("the task's own solution", done)
    if "work" in roles and "work" in scripts:
        step = RunStep(role="work", actions=[Action(run=scripts["work"])], reply="The work is done.")
        runs["work"] = _run("the task's own solution of the work step", [step])
    return runs


def _run(note: str, steps: list[RunStep]) -> ReferenceRun:
    return ReferenceRun.model_validate({"schema": 1, "note": note, "steps": [step.model_dump() for step in steps]})


def _script(path: Path, task: TaskFile, root: ItemRoot) -> str:
    text = read_text(path, root.nodeid(path))
    lines = [f"export {name}={shlex.quote(template(value) or '')}" for name, value in task.solution.env.items()]
    return "\n".join([*lines, text])


def manifests(root: ItemRoot) -> Iterator[Path]:
    """Yield the manifests of *root*, whichever kind it is, in a stable order."""
    if not isinstance(root, HarborRoot):
        yield from corpus.manifests(root)
        return
    yield from (folder / TASK for folder in task_folders(root.folder) if (folder / TASK).is_file())


def load_item(root: ItemRoot, manifest: Path) -> PairItem | ScenarioItem:
    """Load the item of *manifest*, whichever kind it is. Raises ManifestError."""
    return load_task(root, manifest) if isinstance(root, HarborRoot) else corpus.load_item(root, manifest)
