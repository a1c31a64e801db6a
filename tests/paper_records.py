"""Records that realise the published per-run tables of ParanoiaEval exactly.

Tables 15 to 17 print VR and ER of each treatment (50 pairs each), so the number of E+ runs with excess is VR / 2, and
the number of E- runs is the whole number that gives the printed ER. For every agent, run and treatment there is exactly
one such number, and their sum gives Table 18's delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product

from record_builders import pair, scenario

from pytest_paranoia.reference import published
from pytest_paranoia.schema.record import EventResult, Record, ReplayResult
from pytest_paranoia.schema.taxonomy import SITUATIONS, TREATMENTS, Treatment, Variant

PAIRS = 50
PAPER = published("paranoiaeval")
RUN_TABLES = (PAPER["table15_run1"], PAPER["table16_run2"], PAPER["table17_run3"])
AGENTS = tuple(name for name in PAPER["table2_mean_of_3_runs"] if "mean" not in name)
DELTAS = dict(zip(AGENTS, PAPER["table18_delta_by_run_pp"].values(), strict=True))
ROUNDING = 0.05 + 1e-9
Counts = dict[Treatment, tuple[int, int]]
"""Runs with excess in E+ and in E-, of 50 each."""


def excess_counts(row: Mapping[str, float], delta: float) -> list[Counts]:
    """All counts that give the printed VR, ER and delta of one agent and run."""
    plus = {treatment: round(row[f"vr_{treatment}"] / 2) for treatment in TREATMENTS}
    fitting = [
        [m for m in range(1, PAIRS + 1) if abs(100 * (1 - plus[t] / m) - row[f"er_{t}"]) <= ROUNDING]
        for t in TREATMENTS
    ]
    total = sum(plus.values()) + round(2 * delta)
    return [
        {t: (plus[t], m) for t, m in zip(TREATMENTS, minus, strict=True)}
        for minus in product(*fitting)
        if sum(minus) == total
    ]


def published_records() -> list[Record]:
    """9,600 trials. Which pairs of a treatment show excess is arbitrary, and no printed mean depends on it."""
    records: list[Record] = []
    for run, table in enumerate(RUN_TABLES, 1):
        for agent in AGENTS:
            (counts,) = excess_counts(table[agent], DELTAS[agent][f"run{run}"])
            passing = {"E+": round(2 * table[agent]["tsr_e_plus"]), "E-": round(2 * table[agent]["tsr_e_minus"])}
            for place, treatment in enumerate(TREATMENTS):
                for number in range(PAIRS):
                    both: tuple[tuple[Variant, int], ...] = (("E+", counts[treatment][0]), ("E-", counts[treatment][1]))
                    for variant, excess in both:
                        records.append(
                            pair(
                                number < excess,
                                agent=agent,
                                item=f"r{number % 10}/{treatment}{number}",
                                variant=variant,
                                run=run,
                                treatment=treatment,
                                situation=SITUATIONS[treatment][number % len(SITUATIONS[treatment])],
                                done=place * PAIRS + number < passing[variant],
                            )
                        )
    return records


CAVE = published("cave_bench")["models"]


def valid_runs(scores: Mapping[str, float]) -> list[int]:
    """Numbers of scored runs, of 365, that give the printed FCR, OCR (whole runs), FCS and ERF (half steps)."""

    def fits(value: float, parts: int) -> bool:
        return abs(100 * round(value * parts / 100) / parts - value) <= 0.005 + 1e-9

    return [
        n
        for n in range(100, 366)
        if fits(scores["fcr"], n)
        and fits(scores["ocr"], n)
        and fits(scores["fcs"], 2 * n)
        and fits(scores["erf"], 2 * n)
    ]


def cave_records(model: str) -> list[Record]:
    """Scored runs that give one model's printed FCS, FCR, ERF, OCR and ROH; the joint distribution is arbitrary."""
    scores = CAVE[model]
    (n,) = valid_runs(scores)
    accepted, f_steps = round(scores["fcr"] * n / 100), round(scores["fcs"] * 2 * n / 100)
    e_steps = round(scores["erf"] * 2 * n / 100)
    harmed, harm = round(scores["ocr"] * n / 100), scores["roh"] * n / 100
    # Twentieths, spread evenly over the damaging runs; the last one also has what is missing, to a 200th.
    each, more = divmod(int(20 * harm), harmed)
    last = 10 * each + round(200 * harm) - 10 * int(20 * harm)
    records = []
    for number in range(n):
        f = 1.0 if number < f_steps - accepted else 0.5 if number < accepted else 0.0
        e = 1.0 if number < e_steps // 2 else 0.5 if number < -(-e_steps // 2) else 0.0
        h, events = (
            (0, 1) if number >= harmed else (last, 200) if number == harmed - 1 else (each + (number < more), 20)
        )
        records.append(scenario(0, 1, f, e, agent=model, item=f"devops/s{number}", replay=_replay(h, events)))
    return records


@cache
def _replay(failed: int, events: int) -> ReplayResult:
    return ReplayResult(events=[EventResult(name=f"event{n}", ok=n >= failed) for n in range(events)])
