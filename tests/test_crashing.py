"""Which tests are run again: those in which Hermes itself crashed, and no others."""

from __future__ import annotations

import pytest

TESTS = """
import pathlib

def attempt(name):
    path = pathlib.Path(f"{name}.txt")
    count = int(path.read_text()) + 1 if path.exists() else 1
    path.write_text(str(count))
    return count

def test_hermes_once(tmp_path):
    assert attempt("once") > 1, "harness-failed: hermes 0.19.0 was ended by SIGSEGV"

def test_hermes_said_by_a_session():
    print("harness-failed: hermes 0.19.0 was ended by SIGSEGV")
    assert attempt("said") > 1

def test_hermes_always():
    assert attempt("always") < 0, "hermes 0.19.0 was ended by SIGSEGV"

def test_hermes_wrong():
    assert attempt("wrong") > 1, "hermes 0.19.0 was ended by SIGKILL"

def test_other():
    assert attempt("other") > 1, "hermes 0.19.0 was ended by SIGSEGV"
"""


def test_nothing_but_that_crash_is_run_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("-p", "crashing")
    result.assert_outcomes(passed=2, failed=3)
    counts = {path.stem: int(path.read_text()) for path in pytester.path.glob("*.txt")}
    assert counts == {"once": 2, "said": 2, "always": 3, "wrong": 1, "other": 1}
