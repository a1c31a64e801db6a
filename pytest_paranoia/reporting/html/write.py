"""Writing the report: the run directory in, one file out, the same bytes every time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_paranoia.metrics.analysis import Analysis, analyse
from pytest_paranoia.reporting.html import changes, results, rows
from pytest_paranoia.reporting.html.arms import compared_arms
from pytest_paranoia.reporting.html.charts.bars import MEANINGS
from pytest_paranoia.reporting.html.costs import costs
from pytest_paranoia.reporting.html.details import WHOLE, details, room_for
from pytest_paranoia.reporting.html.evidence import evidences
from pytest_paranoia.reporting.html.numbers import count, dollars, duration, number, probability
from pytest_paranoia.reporting.html.overview import overview
from pytest_paranoia.reporting.html.packing import Packed, pack
from pytest_paranoia.reporting.html.safe import INVISIBLE, script_json, source_hash, visible
from pytest_paranoia.schema.record import Record
from pytest_paranoia.store.directory import RunDirectory
from pytest_paranoia.store.files import explained, write_atomic
from pytest_paranoia.store.names import trial_folder_name
from pytest_paranoia.store.summary import RunSummary

_SHOWN: Final = ("all", "treatment", "situation")
REPORT_FILE: Final = "report.html"
_PACKAGE: Final = "pytest_paranoia.reporting.html"
_SCRIPTS: Final = ("text.js", "store.js", "blocks.js", "trial.js", "compare.js", "table.js", "main.js")
_STYLES: Final = ("base.css", "overview.css", "trials.css")


def write_report(
    run: RunDirectory | Path,
    target: Path | None = None,
    *,
    pages: bool = False,
    summary: RunSummary | None = None,
    analysis: Analysis | None = None,
) -> Path:
    """Write the report of *run* and return its path, by default ``report.html`` in the run directory.

    *summary* and *analysis* are those of the run, where they are known already: then the page has the same resamples
    and seed. The file stands alone: every trial's detail is in it, compressed, long texts shortened where the run is
    large. With *pages* a folder beside it, ``<name>-trials/``, gets a page for each trial with its texts whole. Raises
    StoreError where the run cannot be read or the report not be written.
    """
    if isinstance(run, Path):
        run = RunDirectory.open(run)
    target = run.path / REPORT_FILE if target is None else target
    summary = run.summary(run.manifest.gates()) if summary is None else summary
    records = summary.records
    agents = list(summary.agents)
    analysis = analyse(records, pair_groups=_SHOWN) if analysis is None else analysis
    shown, evidence = evidences(run, records)
    packed = pack(chain(details(run, records, room_for(len(records))), shown))
    data = _data(records, packed, evidence)
    # Not below trials/: that folder holds trials and nothing else.
    folder = pages_of(target)
    if pages:
        data["pages"] = [f"{folder.name}/{trial_folder_name(record.trial)}.html" for record in records]
    text = _render(
        "report.html.j2",
        data,
        packed,
        overview=overview(summary),
        agents=agents,
        pairs=results.pairs(analysis, agents),
        scenarios=results.scenarios(analysis, agents),
        runs=changes.runs(analysis, agents),
        transitions=changes.transitions(analysis),
        task_types=changes.task_types(analysis, agents),
        arms=compared_arms(summary),
        costs=costs(records, agents),
        meanings=MEANINGS,
        notes=analysis.notes,
        hints=analysis.hints,
        resamples=analysis.resamples,
        seed=analysis.seed,
    )
    write_atomic(target, text.encode("utf-8", "backslashreplace"))
    if pages:
        _write_pages(run, records, folder, target.name)
    return target


def pages_of(report: Path) -> Path:
    """Return the folder of the trials' own pages beside *report*."""
    return report.with_name(f"{report.stem}-trials")


def _write_pages(run: RunDirectory, records: Sequence[Record], folder: Path, report: str) -> None:
    with explained(folder, "create the folder of trial pages"):
        folder.mkdir(parents=True, exist_ok=True)
    others = rows.counterparts(records)
    for record, other in zip(records, others, strict=True):
        shown = [record, *([records[other]] if other >= 0 else [])]
        found, evidence = evidences(run, shown)
        packed = pack(chain(details(run, shown, WHOLE), found))
        data = _data(shown, packed, evidence) | {"single": True}
        text = _render("trial.html.j2", data, packed, title=record.trial, report=f"../{report}")
        path = folder / f"{trial_folder_name(record.trial)}.html"
        write_atomic(path, text.encode("utf-8", "backslashreplace"))


def _data(records: Sequence[Record], packed: Packed, evidence: Sequence[int]) -> dict[str, Any]:
    return {
        "evidence": evidence,
        "invisible": INVISIBLE,
        "rows": rows.columns(records),
        "other": rows.counterparts(records),
        "where": packed.where,
    }


def _render(template: str, data: dict[str, Any], packed: Packed, **context: Any) -> str:
    script, style = _asset(_SCRIPTS), _asset(_STYLES)
    policy = (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            policy=Markup(policy),  # our own text; its quotes are legal inside double quotes
            script=Markup(script),
            style=Markup(style),
            data=script_json(data),
            blocks=[Markup(block) for block in packed.blocks],  # base64
            **context,
        )
    )


@cache
def _asset(names: tuple[str, ...]) -> str:
    folder = files(_PACKAGE) / "assets"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printed,
    )
    environment.filters |= {
        "number": number,
        "probability": probability,
        "count": count,
        "dollars": dollars,
        "duration": duration,
    }
    return environment


def _printed(value: Any) -> Any:
    """Make visible what every template prints; escaping comes after this. None never reaches a page unworded."""
    if value is None:
        raise TypeError("a template prints None")
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
