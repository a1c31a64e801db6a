"""Run directories: every trial on disk when it ends, atomically; reports and resume read the disk and nothing else.

Layout of ``reports/<run>/`` (docs/records.md tells more)::

    run.json                       RunManifest: what ran, with which versions
    plan.json                      keys of the trials the run means to make
    trials/<slug>-<hash>/          one complete trial: record.json and its artifacts
    results.jsonl results.csv      one line a record
    summary.json                   the aggregate
    set-aside/                     unreadable trial folders that a new record took the place of
    .work/ .lock                   writes in flight; who may resume
"""

from pytest_paranoia.store.directory import RunDirectory
from pytest_paranoia.store.files import StoreError
from pytest_paranoia.store.loading import DoneTrials, LoadResult, Problem
from pytest_paranoia.store.manifest import RunManifest, tool_versions
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.summary import RunSummary

__all__ = [
    "DoneTrials",
    "LoadResult",
    "Problem",
    "RunDirectory",
    "RunManifest",
    "RunSummary",
    "StoreError",
    "tool_versions",
    "trial_folder_name",
]
