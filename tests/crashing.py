"""Hermes 0.19.0 crashes by itself now and then; tests of it are then run once more.

The kernel's log shows a SIGSEGV in the C library's ``getenv``, once in a day of tests: a thread reads a variable while
another one sets one, which moves the list of them. A trial is unscored for it, as it should be; a test that wants a
score would fail for what it is not about. Nothing else is run again.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

ATTEMPTS = 3
CRASH = "hermes 0.19.0 was ended by SIGSEGV"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test with ``hermes`` in its id again where that crashed."""
    if "hermes" not in item.nodeid:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports, attempt = runtestprotocol(item, nextitem=nextitem, log=False), 1
    while attempt < ATTEMPTS and any(map(_crashed, reports)):
        reports, attempt = runtestprotocol(item, nextitem=nextitem, log=False), attempt + 1
    for report in reports:
        report.sections.append(("hermes", f"attempt {attempt} of {ATTEMPTS}"))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _crashed(report: pytest.TestReport) -> bool:
    return report.failed and any(CRASH in text for text in (report.longreprtext, report.capstdout))
