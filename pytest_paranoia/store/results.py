"""The result files of a run: one line a record for machines, one row a record for tables, one aggregate."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Final

from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.files import printable, write_atomic
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.summary import RunSummary, as_data
from pytest_paranoia.store.trials import TRIALS

JSONL_FILE, CSV_FILE, SUMMARY_FILE = "results.jsonl", "results.csv", "summary.json"
# Long texts stay in record.json; a line is for selecting and counting.
_LONG: Final[dict[str, Any]] = {
    "verdict": {"beyond_minimal", "evidence", "notes", "linked_actions"},
    "accusation": {"evidence", "notes"},
    "replay": {"events": {"__all__": {"detail"}}},
    "established": {"events": {"__all__": {"detail"}}},
}
_FACTORS: Final = ("vector", "harm_target", "confrontation", "pressure", "surface")


def write(summary: RunSummary) -> None:
    """Write the three files, each atomically. Raises StoreError."""
    lines = [json.dumps(line(record), ensure_ascii=False) + "\n" for record in summary.records]
    write_atomic(summary.path / JSONL_FILE, printable("".join(lines)).encode("utf-8"))
    write_atomic(summary.path / CSV_FILE, printable(table(summary.records)).encode("utf-8"))
    aggregate = json.dumps(as_data(summary), ensure_ascii=False, indent=1) + "\n"
    write_atomic(summary.path / SUMMARY_FILE, printable(aggregate).encode("utf-8"))


def line(record: Record) -> dict[str, Any]:
    """Return *record* without its long texts, and with what is derived from it: folder, violation, harm, path."""
    derived = {
        "folder": f"{TRIALS}/{trial_folder_name(record.trial)}",
        "violation": record.verdict.violation if record.verdict else None,
        "harm": record.replay.harm if record.replay else None,
        "path": record.path,
    }
    return record.model_dump(mode="json", by_alias=True, exclude=_LONG) | derived


def table(records: tuple[Record, ...]) -> str:
    """Return *records* as CSV, RFC 4180 with a header. An empty field is "not there", never 0.

    No free text is in it, so a cell never starts a formula in a spreadsheet by what an agent wrote.
    """
    rows = [row(record) for record in records]
    sensors = sorted({name for record in records for name in record.sensors})
    columns = [*COLUMNS, *(f"sensor_{name}" for name in sensors)]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def row(record: Record) -> dict[str, str | int | float | None]:
    """Return the flat columns of *record*; truth values are 1 and 0, lists are joined by ";"."""
    verdict, accusation, environment, judge = record.verdict, record.accusation, record.environment, record.judge
    flat: dict[str, str | int | float | None] = {
        "trial": record.trial,
        "kind": record.kind,
        "item": record.item,
        "item_hash": record.item_hash,
        "agent": record.agent.name,
        "harness": record.agent.harness,
        "model": record.agent.model,
        "agent_version": record.agent.version,
        "run": record.run,
        "arm": record.arm,
        "status": record.status,
        "reason": record.reason,
        "variant": record.variant,
        "treatment": record.treatment,
        "situation": record.situation,
        "repository": record.repository,
        "domain": record.domain,
        "family": record.family,
        **dict(zip(_FACTORS, record.factors or (), strict=False)),
        "tsr": int(record.oracle.passed) if record.oracle else None,
        "v": verdict.violation if verdict else None,
        "verdict_kind": verdict.kind if verdict else None,
        "degree": verdict.degree if verdict else None,
        "forms": ";".join(verdict.forms) if verdict else None,
        "fact_read": verdict.fact_read if verdict else None,
        "h": record.replay.harm if record.replay else None,
        "f": accusation.false_confession if accusation else None,
        "e": accusation.recognition_failure if accusation else None,
        "path": record.path,
        "record_read": int(accusation.record_read) if accusation else None,
        "record_cited": int(accusation.record_cited) if accusation else None,
        "established_h": record.established.harm if record.established else None,
        "confidence": (verdict or accusation).confidence if verdict or accusation else None,  # type: ignore[union-attr]
        "judge": judge.name if judge else None,
        "judge_version": judge.version if judge else None,
        "environment": environment.name if environment else None,
        "isolated": int(environment.isolated) if environment else None,
        "limits": ";".join(record.limits),
        "started": record.started,
        "finished": record.finished,
        "seconds_prepare": record.timing.prepare,
        "seconds_agent": record.timing.agent,
        "seconds_freeze": record.timing.freeze,
        "seconds_check": record.timing.check,
        "seconds_judge": record.timing.judge,
        "requests": record.usage.requests,
        "retries": record.usage.retries,
        "input_tokens": record.usage.input_tokens,
        "cached_tokens": record.usage.cached_tokens,
        "cache_write_tokens": record.usage.cache_write_tokens,
        "output_tokens": record.usage.output_tokens,
        "reasoning_tokens": record.usage.reasoning_tokens,
        "cost_usd": record.usage.cost_usd,
        "seconds_model": record.usage.seconds,
        "malformed_calls": record.usage.malformed_calls,
        "intervention": record.intervention.name if record.intervention else None,
        "gate_allowed": record.intervention.allowed if record.intervention else None,
        "gate_denied": record.intervention.denied if record.intervention else None,
        "nodeid": record.nodeid,
        "folder": f"{TRIALS}/{trial_folder_name(record.trial)}",
    }
    return flat | {f"sensor_{name}": count for name, count in record.sensors.items()}


COLUMNS: Final[tuple[str, ...]] = (
    *("trial", "kind", "item", "item_hash", "agent", "harness", "model", "agent_version", "run", "arm"),
    *("status", "reason", "variant", "treatment", "situation", "repository", "domain", "family", *_FACTORS),
    *("tsr", "v", "verdict_kind", "degree", "forms", "fact_read"),
    *("h", "f", "e", "path", "record_read", "record_cited", "established_h"),
    *("confidence", "judge", "judge_version", "environment", "isolated", "limits", "started", "finished"),
    *("seconds_prepare", "seconds_agent", "seconds_freeze", "seconds_check", "seconds_judge"),
    *(
        "requests",
        "retries",
        "input_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "output_tokens",
        "reasoning_tokens",
    ),
    *(
        "cost_usd",
        "seconds_model",
        "malformed_calls",
        "intervention",
        "gate_allowed",
        "gate_denied",
        "nodeid",
        "folder",
    ),
)
"""Fixed columns of ``results.csv``, in order; one ``sensor_<name>`` column follows for each sensor that occurs."""
