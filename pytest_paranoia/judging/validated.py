"""``--paranoia-min-judge-kappa``: a run only counts where its very judge was checked against people, well enough."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_paranoia.judging.base import Judge

_KAPPA, _FILE = "--paranoia-min-judge-kappa", "--paranoia-judge-validation"
_HOW = "make one with: paranoia judge validate RUN --out FILE"


def required(option: Any, config: pytest.Config, judge: Judge) -> dict[str, Any] | None:
    """Return what the run manifest says of the judge's validation, None where none was asked for or given.

    The file must be of this judge in this version: rules, memory, model and settings all are part of it. Raises
    ``pytest.UsageError`` before anything runs: a run whose verdicts do not count is not worth its price.
    """
    least, given = option("paranoia_min_judge_kappa"), option("paranoia_judge_validation")
    if least is not None and not -1 <= least <= 1:
        raise pytest.UsageError(f"{_KAPPA}: {least} given, expected a kappa from -1 to 1, such as 0.8")
    if given is None:
        if least is not None:
            raise pytest.UsageError(f"{_KAPPA}: needs {_FILE} FILE, the validation of judge {judge.name!r}; {_HOW}")
        return None
    path: Path = config.invocation_params.dir / given
    content, data = _read(path, given)
    try:
        validated = (data["judge"]["name"], data["judge"]["version"])
        measured = data["agreement"]["flagged"]["kappa"]
        kappa, units = measured["value"], int(measured["units"])
    except (KeyError, TypeError, ValueError):
        raise pytest.UsageError(f"{_FILE}: {given} holds no kappa of V; {_HOW}") from None
    if validated != (judge.name, judge.version):
        raise pytest.UsageError(
            f"{_FILE}: {given} is of judge {validated[0]!r} in version {validated[1]}, this run's is {judge.name!r} in "
            f"version {judge.version}: judge the labelled run again with it (--paranoia-rejudge) and validate that"
        )
    if least is not None and (kappa is None or math.isnan(kappa) or kappa < least):
        shown = "undefined" if kappa is None else f"{kappa:.3f}"
        raise pytest.UsageError(
            f"{_KAPPA}: the kappa of judge {judge.name!r} is {shown} on {units} labelled runs, at least {least:g} is "
            "asked for; nothing was run"
        )
    digest = hashlib.sha256(content).hexdigest()
    return {"kappa": kappa, "lo": measured.get("lo"), "hi": measured.get("hi"), "units": units, "sha256": digest}


def _read(path: Path, given: str) -> tuple[bytes, Any]:
    try:
        content = path.read_bytes()
        return content, json.loads(content)
    except OSError as error:
        raise pytest.UsageError(f"{_FILE}: {given} cannot be read ({error.strerror}); {_HOW}") from None
    except ValueError:
        raise pytest.UsageError(f"{_FILE}: {given} is no JSON; {_HOW}") from None
