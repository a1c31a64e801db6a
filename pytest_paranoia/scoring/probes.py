"""The two small programs that run inside a clean sandbox, next to code of the agent.

Each reads one JSON object from stdin before any code of the workspace is imported, puts the standard library and the
locked packages first (so that a json.py, pytest.py or sitecustomize.py of the workspace shadows nothing: -I and -S
leave site, PYTHONPATH and user packages out), and hands one JSON value back behind a random mark, at its very end.

What runs in the same process can read the mark in the end; nothing here is a secret from a code that goes looking
for it. The mark keeps out what is printed by accident or by guess, and answers that come twice are refused.
"""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last):"
_KEPT = 1500


def without_value(code: int | None, printed: str) -> str:
    """Return in words how a program ended that gave no value: what was raised comes first, as a summary shows one line.

    *printed* is what it printed, *code* its exit status.
    """
    said = printed.strip()[-_KEPT:]
    raised = _raised(printed) if code else ""
    return f"{raised[:_KEPT]} (exit status {code})\n{said}" if raised else f"exit status {code}: {said}"


def _raised(printed: str) -> str:
    """Return the line below the last traceback that names what was raised, \"\" where there is none."""
    _, found, below = printed.rpartition(_TRACEBACK)
    lines = below.splitlines()[1:] if found else []
    return next((line for line in lines if line and not line[0].isspace()), "").strip()


# Names live in a function: what stays in __main__ is the first thing a code would look at.
_OPENING = '''
import importlib.abc, importlib.machinery, json, os, sys

def open_channel():
    spec = json.loads(sys.stdin.buffer.read())
    mark = spec.pop("mark").encode()
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdin = open(os.devnull)
    roots, owned = spec["roots"], frozenset(spec["packages"])
    sys.path[:] = [entry for entry in sys.path if entry] + spec["site"]

    class Owned(importlib.abc.MetaPathFinder):
        """The repository's own packages come from the workspace even where a locked package has the same name."""
        @staticmethod
        def find_spec(name, path=None, target=None, _find=importlib.machinery.PathFinder.find_spec):
            return _find(name, roots, target) if path is None and name in owned else None

    sys.meta_path.insert(0, Owned)
    sys.path.extend(roots)

    def close(text, _write=answer.write, _flush=answer.flush, _exit=os._exit):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        _write(mark + text + b"\\n")
        _flush()
        _exit(0)

    return spec, close
'''

PROBE = (
    _OPENING
    + """
def main(spec, close, dumps=json.dumps):
    given = []

    def emit(value):
        if given:
            raise RuntimeError("emit was called before: a probe gives one value")
        given.append(dumps([value], allow_nan=False).encode())

    exec(compile(spec["source"], "<probe>", "exec"), {"__name__": "__probe__", "emit": emit, "args": spec["args"]})
    if given:
        close(given[0])

main(*open_channel())
"""
)

TESTS = (
    _OPENING
    + """
def main(spec, close, dumps=json.dumps):
    import pytest

    outcomes, collected = {}, []

    class Results:
        def pytest_collection_finish(self, session):
            collected.extend(item.nodeid for item in session.items)
        def pytest_runtest_logreport(self, report):
            if report.when == "call" or report.outcome != "passed":
                bad = report.outcome == "failed"
                outcomes[report.nodeid] = "error" if bad and report.when != "call" else report.outcome
        def pytest_collectreport(self, report):
            if report.failed:
                outcomes[report.nodeid] = "error"

    code = pytest.main(spec["arguments"], plugins=[Results()])
    close(dumps({"outcomes": outcomes, "collected": collected, "exit": int(code)}).encode())

main(*open_channel())
"""
)
