"""Hooks only. Without ``--paranoia`` (or ``--paranoia-validate``) nothing beyond this module is imported."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options; everything they mean is decided in :mod:`pytest_paranoia.options`."""
    group = parser.getgroup("paranoia", "unnecessary defensive work and damage under false accusation")
    add = group.addoption
    add("--paranoia", action="store_true", help="run the benchmark: task pairs and accusation scenarios as items")
    add("--paranoia-validate", action="store_true", help="prove the items instead of running agents on them")
    add(
        "--paranoia-model",
        **_MODELS,
        help="agent: a model of `paranoia models` (opus-5), HARNESS:MODEL[@PROVIDER or URL], a scripted one (minimal, "
        "responsive, paranoid, scripted:RUN) or replay:RUN; repeat or separate by commas (default: the scripted three)",
    )
    add("--paranoia-models", metavar="FILE", help="TOML file with models and providers of your own")
    add("--paranoia-effort", metavar="LEVEL", help="reasoning effort of all agents, in their harness's words")
    add("--paranoia-max-turns", type=int, metavar="N", help="most model turns of an agent for one user message")
    add("--paranoia-instructions", metavar="FILE", help="instruction file of all arms (CLAUDE.md, AGENTS.md)")
    add("--paranoia-gate", metavar="GATE", help="gate of all arms: irreversible, live-signal or MODULE:CLASS, or …?dry")
    add(
        "--paranoia-arm",
        action="append",
        metavar="NAME=PART[+PART]",
        help="one more arm on the same items, compared with the baseline (NAME=none, run unasked): rule:FILE, "
        "rule:evidence, rule:proportionality, instructions:FILE, gate:GATE (repeatable)",
    )
    add("--paranoia-max-cost", type=float, metavar="USD", help="most that the model calls of the whole run may cost")
    add("--paranoia-trial-cost", type=float, metavar="USD", help="most that the model calls of one trial may cost")
    add("--paranoia-trial-tokens", type=int, metavar="N", help="most tokens, in and out, of one trial")
    add("--paranoia-trial-requests", type=int, metavar="N", help="most model calls of one trial")
    add(
        "--paranoia-retry-seconds",
        type=float,
        metavar="SECONDS",
        help="how long model calls that a provider refuses for the moment are repeated (default: 300)",
    )
    add("--paranoia-prices", metavar="FILE", help="TOML file with prices of your own, before the package's table")
    add(
        "--paranoia-items",
        action="append",
        metavar="DIR",
        help="folder with tasks/ and oracles/ to use instead of the built-in items; 'builtin' names those (repeatable)",
    )
    add(
        "--paranoia-part",
        metavar="K/N",
        help="only part K of N equal parts of the items; each item is in one of them, the same one on every machine",
    )
    add("--paranoia-runs", type=int, metavar="N", help="runs of every agent on every item (default: 1)")
    add(
        "--paranoia-judge",
        metavar="JUDGE",
        help="judge of the runs: sensors (the default), chat:MODEL[@PROVIDER or URL], claude-code:MODEL or codex:MODEL",
    )
    add("--paranoia-judge-effort", metavar="LEVEL", help="reasoning effort of the judge, in its harness's words")
    add("--paranoia-judge-max-turns", type=int, metavar="N", help="most model turns of one judgement (default: 40)")
    add("--paranoia-judge-timeout", type=float, metavar="SECONDS", help="wall clock of one judgement (default: 900)")
    add(
        "--paranoia-judge-reading",
        choices=("tools", "inline"),
        help="how chat:MODEL gets to see a run: by read-only tools (the default), or all of it in the prompt",
    )
    add("--paranoia-judge-memory", metavar="DIR", help="folder of the exemplars (default: our own), or off")
    add("--paranoia-judge-encoder", metavar="MODEL@URL", help="embeddings endpoint (default: offline) for exemplars")
    add("--paranoia-judge-cache", metavar="DIR", help="folder of verdicts (default: the machine's cache), or off")
    add("--paranoia-judge-triage", action="store_true", help="do not ask the model where the sensors are certain")
    add(
        "--paranoia-judge-votes", type=int, metavar="K", help="judge each run K times; the majority counts (default: 1)"
    )
    add(
        "--paranoia-judge-validation",
        metavar="FILE",
        help="validation of this judge by `paranoia judge validate --out`; kept in run.json",
    )
    add(
        "--paranoia-min-judge-kappa",
        type=float,
        metavar="K",
        help="run nothing unless the kappa of V in that validation is at least K",
    )
    add("--paranoia-rejudge", metavar="RUN", help="judge the archived trials of RUN again, without running any agent")
    add("--paranoia-environment", metavar="NAME", help="where trials run: local or docker (default: local)")
    add(
        "--paranoia-docker-base",
        metavar="IMAGE",
        help="image that docker's images are built from (default: that of `paranoia images base`, else python:X.Y)",
    )
    add(
        "--paranoia-docker-starts",
        type=int,
        metavar="N",
        help="most containers that start at once on this machine (default: one for each processor, at least 2)",
    )
    add("--paranoia-reports", metavar="DIR", help="folder of the run directories (default: reports)")
    add("--paranoia-run", metavar="NAME", help="name of this run's directory (default: time and a random part)")
    add("--paranoia-resume", metavar="RUN", help="continue RUN (a name or folder): only trials without a score run")
    add("--paranoia-timeout", type=float, metavar="SECONDS", help="wall clock of one agent run (default: the item's)")
    add(
        "--paranoia-check-timeout",
        type=float,
        metavar="SECONDS",
        help="wall clock of one oracle or replay (default: 120)",
    )
    add("--paranoia-strict", action="store_true", help="a violation (E+ and V = 1) fails its item")
    add("--paranoia-compare", metavar="RUN", help="compare this run with RUN, an earlier one, in the summary")
    add("--paranoia-markdown", metavar="FILE", help="write a job summary in Markdown (GitHub, GitLab)")
    add("--paranoia-badge", metavar="FILE", help="write a badge as shields.io endpoint JSON")
    add("--paranoia-html", metavar="FILE", help="write the HTML report at the end of the run")
    for name, (metric, direction) in GATES.items():
        bound = "at most" if direction == "max" else "at least"
        add(
            f"--paranoia-{direction}-{name}",
            type=float,
            metavar="PERCENT",
            help=f"gate: {metric} of every agent is {bound} PERCENT; with a gate the aggregate sets the exit status",
        )


_MODELS: dict[str, Any] = {"action": "append", "dest": "paranoia_model", "metavar": "AGENT"}


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, None, None]:
    """Add ``--model`` as the short name of ``--paranoia-model``, unless somebody else has it.

    Not before every plugin and conftest.py has added its options: ``--model`` is a common name, and where it was taken
    already pytest would refuse to start, also in projects that never use this plugin.
    """
    yield
    with suppress(ValueError, argparse.ArgumentError):
        parser.getgroup("paranoia").addoption("--model", **_MODELS, help="the same as --paranoia-model")


# Here and not in options.py, which is only imported when the plugin is active.
GATES = {
    "vr": ("VR", "max"),
    "er": ("ER", "min"),
    "tsr": ("TSR", "min"),
    "cave": ("CAVE", "max"),
    "roh": ("ROH", "max"),
    "ocr": ("OCR", "max"),
    "fcs": ("FCS", "max"),
    "fcr": ("FCR", "max"),
    "erf": ("ERF", "max"),
    "cdc": ("CDC", "max"),
}


def pytest_configure(config: pytest.Config) -> None:
    """Hand over to the session object when asked to."""
    if config.getoption("paranoia") or config.getoption("paranoia_validate"):
        from pytest_paranoia.session import activate

        activate(config)
    elif given := [word for word in map(str, config.invocation_params.args) if word.startswith("--paranoia-")]:
        # A gate that is asked for and not applied would stay green for ever. Options that a configuration file
        # brings along (addopts) are no request: they wait for a session that has --paranoia.
        import pytest

        raise pytest.UsageError(f"{given[0].partition('=')[0]}: has no effect without --paranoia; add it")
