"""JUnit: properties and system-out of a trial, for CI servers that know nothing of this plugin.

Jenkins keeps properties on request; GitLab reads none but shows system-out. pytest writes system-out only where
``junit_logging`` says so and then mixes it with captured output, hence ``add_system_out`` after it wrote the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from pytest_paranoia.metrics.gates import METRICS
from pytest_paranoia.reporting.status import word_and_letter
from pytest_paranoia.reporting.text import clip, one_line, xml_safe
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.verdict import Evidence
from pytest_paranoia.store.files import StoreError, printable, write_atomic
from pytest_paranoia.store.summary import RunSummary

PREFIX: Final = "paranoia."
"""Every property begins with it: properties of other plugins share the element."""
_LONGEST: Final = 300
_LISTED: Final = 10


def properties(record: Record) -> list[tuple[str, str]]:
    """Return the properties of *record*, all plain strings: anything else ends in INTERNALERROR under xdist.

    What a record does not have is left out. Values hold no control characters and no lone surrogates.
    """
    verdict, label = record.verdict, record.accusation
    values: dict[str, object] = {
        "trial": record.trial,
        "verdict": word_and_letter(record)[1],
        "status": record.status,
        "reason": record.reason,
        "agent": record.agent.name,
        "harness": record.agent.harness,
        "model": record.agent.model,
        "run": record.run,
        "arm": record.arm,
        "variant": record.variant,
        "treatment": record.treatment,
        "situation": record.situation,
        "repository": record.repository,
        "domain": record.domain,
        "family": record.family,
        "factors": " ".join(record.factors) if record.factors else None,
        "tsr": int(record.oracle.passed) if record.oracle else None,
        "V": verdict.violation if verdict else None,
        "kind": verdict.kind if verdict else None,
        "forms": ", ".join(verdict.forms) if verdict else None,
        "degree": verdict.degree if verdict else None,
        "path": record.path,
        "h": f"{record.replay.harm:.4g}" if record.replay else None,
        "f": f"{label.false_confession:g}" if label else None,
        "e": f"{label.recognition_failure:g}" if label else None,
        "intervention": record.intervention.name if record.intervention else None,
        "withheld": record.intervention.denied if record.intervention and record.intervention.gates else None,
        "cost": None if record.usage.cost_usd is None else f"{record.usage.cost_usd:.6f}",
        "judge_cost": _judge_cost(record),
        "seconds": f"{record.timing.agent:.1f}",
        "judge": f"{record.judge.name} {record.judge.version}" if record.judge else None,
        "environment": record.environment.name if record.environment else None,
        "isolated": str(record.environment.isolated).lower() if record.environment else None,
        "tampering": ", ".join(dict.fromkeys(sign.kind for sign in record.tampering or ())) or None,
    }
    return [(PREFIX + name, _value(str(value))) for name, value in values.items() if value is not None]


def _judge_cost(record: Record) -> str | None:
    usage = record.judging.usage if record.judging is not None else None
    return None if usage is None or not usage.requests or usage.cost_usd is None else f"{usage.cost_usd:.6f}"


def _value(text: str) -> str:
    return clip(xml_safe(printable(text)), _LONGEST)


def system_out(record: Record) -> str:
    """Return a short readable account of *record*: the verdict, why, and what it rests on."""
    lines = [clip(one_line(text, "utf-8", indent=True), _LONGEST) for text in _account(record)]
    # GitLab takes this for a file of ours to link; an agent's words must not choose one.
    return xml_safe("\n".join(lines).replace("[[ATTACHMENT|", "[[ATTACHMENT |") + "\n")


def _account(record: Record) -> Iterator[str]:
    undone = record.oracle is not None and not record.oracle.passed
    yield f"paranoia: {word_and_letter(record)[1]}{', task not done' if undone else ''}"
    what = [record.variant, record.treatment, record.situation, record.domain, record.family, *(record.factors or ())]
    yield f"{record.item} ({', '.join(str(part) for part in what if part)})"
    model = f", {record.agent.model}" if record.agent.model else ""
    yield f"agent {record.agent.name} ({record.agent.harness} {record.agent.version}{model}), run {record.run}"
    if record.arm is not None:
        yield f"arm {record.arm}"
    if (added := record.intervention) is not None:
        calls = f": {added.denied} calls withheld, {added.allowed} allowed" if added.gates else ""
        yield f"added to the agent: {added.name}{calls}"
    if record.reason is not None:
        yield f"{record.status}: {record.reason}{f': {record.message}' if record.message else ''}"
    if record.oracle is not None:
        yield f"oracle: {'passed' if record.oracle.passed else f'failed: {record.oracle.message}'}"
    if record.replay is not None:
        events = ", ".join(f"{event.name} {'ok' if event.ok else 'FAILED'}" for event in record.replay.events)
        yield f"replay: h = {record.replay.harm:.4g} ({events})"
    yield from _judged(record)
    if record.limits:
        yield f"limits hit: {', '.join(record.limits)}"
    yield from _listed("signs of tampering (not scored)", [str(sign) for sign in record.tampering or ()])
    if seen := {name: count for name, count in record.sensors.items() if count}:
        yield f"sensors: {', '.join(f'{name} {count}' for name, count in sorted(seen.items()))}"


def _judged(record: Record) -> Iterator[str]:
    by = f" (judge {record.judge.name} {record.judge.version})" if record.judge else ""
    if (verdict := record.verdict) is not None:
        forms = f", forms {', '.join(verdict.forms)}" if verdict.forms else ""
        yield f"V = {verdict.violation}: {verdict.kind}, degree {verdict.degree}{forms}{by}"
        yield f"decisive fact read: {verdict.fact_read}"
        yield from _listed("beyond the minimum", verdict.beyond_minimal)
        yield from _quoted(verdict.evidence)
        yield from ([f"notes: {verdict.notes}"] if verdict.notes else [])
    if (label := record.accusation) is not None:
        yield f"f = {label.false_confession:g}, e = {label.recognition_failure:g}{by}"
        read, cited = ("" if label.record_read else "not "), ("" if label.record_cited else "not ")
        yield f"record {read}read, {cited}cited; first change of the protected state: {label.first_change or 'none'}"
        yield from _quoted(label.evidence)
        yield from ([f"notes: {label.notes}"] if label.notes else [])


def _quoted(evidence: list[Evidence]) -> Iterator[str]:
    return _listed("evidence", [f"[{piece.source}] {piece.quote}" for piece in evidence])


def _listed(title: str, entries: list[str]) -> Iterator[str]:
    if entries:
        yield f"{title}:"
    for entry in entries[:_LISTED]:
        yield f"  - {entry}"
    if (more := len(entries) - _LISTED) > 0:
        yield f"  ... and {more} more"


def address(nodeid: str) -> tuple[str, str]:
    """Return the (classname, name) that pytest's JUnit report gives *nodeid*."""
    path, bracket, parameters = nodeid.partition("[")
    names = path.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    return xml_safe(".".join(names[:-1])), xml_safe(names[-1] + bracket + parameters)


def complete(xml_path: Path, summary: RunSummary) -> list[str]:
    """Add to pytest's JUnit file what is known once a run is over: the account of each trial, and the suite's metrics.

    Returns and raises what ``add_system_out`` does.
    """
    texts = {record.nodeid: system_out(record) for record in summary.records}
    return add_system_out(xml_path, texts, suite_properties(summary))


def suite_properties(summary: RunSummary) -> dict[str, str]:
    """Return the properties of the whole suite: counts, the metrics of each agent, and what the gates said."""
    counts = summary.counts
    values: dict[str, str] = {"run": summary.manifest.run}
    values |= {name: str(getattr(counts, name)) for name in ("attempted", "scored", "invalid", "unscored")}
    values["missing"] = str(len(summary.missing))
    for name, metrics in summary.agents.items():
        for metric, read in METRICS.items():
            if (value := read(metrics)) is not None:
                values[f"{name}.{metric}"] = f"{value:.4g}"
    if (report := summary.arms) is not None:
        from pytest_paranoia.reporting import arms

        values |= arms.properties(report)
    for result in summary.gates:
        values[f"{result.agent}.gate {result.gate.name}"] = "passed" if result.passed else f"failed: {result.reason}"
    return {_value(PREFIX + name): _value(value) for name, value in values.items()}


def add_system_out(xml_path: Path, texts: Mapping[str, str], suite: Mapping[str, str] | None = None) -> list[str]:
    """Write *texts*, by nodeid, as system-out into the JUnit file pytest has written; return the nodeids not in it.

    *suite* are properties of the first test suite; those of the same name are replaced.

    Call it once the file is there: in ``pytest_terminal_summary`` or later. A prefix given by ``--junitprefix`` is
    allowed for. The file is replaced atomically; text that is there already is not added again. Raises StoreError where
    it is no XML or cannot be replaced. A path that is no regular file (/dev/stdout) is left alone.
    """
    path = xml_path.resolve()  # a symlink stays one
    if not path.is_file():
        return list(texts)
    try:
        tree = ElementTree.parse(path)
    except (ElementTree.ParseError, OSError) as error:
        raise StoreError(path, f"the JUnit report cannot be read ({error})", "Look for what else writes it") from error
    cases: dict[str, list[ElementTree.Element]] = {}
    for case in tree.iter("testcase"):
        cases.setdefault(case.get("name", ""), []).append(case)
    missing: list[str] = []
    for nodeid, text in texts.items():
        classname, name = address(nodeid)
        found = [case for case in cases.get(name, ()) if _is_class(case.get("classname", ""), classname)]
        for case in found:
            _append(case, xml_safe(text))
        if not found:
            missing.append(nodeid)
    if suite and (element := next(tree.iter("testsuite"), None)) is not None:
        _set_properties(element, suite)
    content = ElementTree.tostring(tree.getroot(), encoding="utf-8", xml_declaration=True)
    write_atomic(path, content)
    return missing


def _set_properties(suite: ElementTree.Element, values: Mapping[str, str]) -> None:
    element = suite.find("properties")
    if element is None:
        element = ElementTree.Element("properties")
        suite.insert(0, element)
    for old in [one for one in element if one.get("name") in values]:
        element.remove(old)
    for name, value in values.items():
        ElementTree.SubElement(element, "property", name=name, value=value)


def _is_class(found: str, classname: str) -> bool:
    return found == classname or found.endswith(f".{classname}")


def _append(case: ElementTree.Element, text: str) -> None:
    """Add *text* to the system-out of *case*, which stands before system-err and after everything else."""
    out = case.find("system-out")
    if out is None:
        out = ElementTree.Element("system-out")
        children = list(case)
        at = next((position for position, child in enumerate(children) if child.tag == "system-err"), len(children))
        case.insert(at, out)
    before = out.text or ""
    if text not in before:
        out.text = f"{before.rstrip()}\n{text}" if before.strip() else text
