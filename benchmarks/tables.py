"""All tables of 9,600 trials, and each resample against a plain-Python bootstrap loop in the same run.

    python benchmarks/tables.py [--rounds N] [--resamples N] [--check]

Eight agents with three runs of 150 pairs and 100 scenarios make 9,600 trials, spread over the papers' treatments,
situations, domains and factor values. Records are made before the clock starts; importing pandas is not in it either.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

import pandas as pd
from measuring import Bounds, median
from record_builders import pair, scenario

from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.metrics.effects import paired_effects
from pytest_paranoia.metrics.pairing import pair_arrays
from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import (
    CONFRONTATIONS,
    DOMAINS,
    HARMS,
    PRESSURES,
    SITUATIONS,
    SURFACES,
    TREATMENTS,
    VARIANTS,
    VECTORS,
)

SECONDS, MEGABYTES, RATIO = 3.0, 600.0, 50.0
AGENTS, RUNS, PAIRS, SCENARIOS, REPOSITORIES = 8, 3, 150, 100, 20


def records(seed: int = 1) -> list[Record]:
    """Return the trials: agents and items differ in how often they treat a risk."""
    chance = random.Random(seed)
    factors = [list(names) for names in (VECTORS, HARMS, CONFRONTATIONS, PRESSURES, SURFACES)]
    found: list[Record] = []
    items = []
    for number in range(PAIRS):
        treatment = TREATMENTS[number % len(TREATMENTS)]
        situation = chance.choice(SITUATIONS[treatment])
        items.append((f"repo{number % REPOSITORIES}/p{number}", treatment, situation, chance.random()))
    scenes = []
    for number in range(SCENARIOS):
        domain = DOMAINS[number % len(DOMAINS)]
        drawn = [chance.choice(values) for values in factors]
        scenes.append((f"{domain}/s{number}", domain, drawn, chance.choice(["inherited-resume", "self-built"])))
    for place in range(AGENTS):
        agent = f"agent-{place}"
        for run in range(1, RUNS + 1):
            for item, treatment, situation, ease in items:
                for variant in VARIANTS:
                    rate = ease * (0.3 if variant == "E+" else 0.8) + 0.02 * place
                    labels = {"treatment": treatment, "situation": situation, "variant": variant}
                    one = pair(chance.random() < rate, agent=agent, item=item, run=run, **labels)
                    found.append(one)
            for item, domain, drawn, family in scenes:
                f, e = (chance.choice([0.0, 0.0, 0.5, 1.0]) for _ in range(2))
                labels = {"domain": domain, "factors": drawn, "family": family}
                found.append(scenario(chance.randrange(5), 4, f, e, agent=agent, item=item, run=run, **labels))
    return found


Numbers = tuple[float, float, float | None]


def plain(agents: list[list[tuple[list[float], list[float]]]], resamples: int) -> list[list[Numbers]]:
    """VR, delta and pooled ER of every agent by a loop, without the intervals, tests and row of all that ours adds.

    An agent has pairs, a pair has V(E+) and V(E-) of each run. The same pairs are drawn for all agents, as in ours.
    """
    chance = random.Random(1)
    units = range(PAIRS)
    found = []
    for _ in range(resamples):
        places = chance.choices(units, k=PAIRS)
        row: list[Numbers] = []
        for pairs in agents:
            drawn = [pairs[place] for place in places]
            vr = sum(sum(plus[run] for plus, _ in drawn) / len(drawn) for run in range(RUNS)) / RUNS
            plus, minus = sum(sum(one[0]) for one in drawn), sum(sum(one[1]) for one in drawn)
            er = 100 * (1 - plus / minus) if minus else None
            row.append((100 * vr, 100 * (minus - plus) / RUNS / len(drawn), er))
        found.append(row)
    return found


def seconds(made: Callable[[], object]) -> float:
    """Processor time of the best of three: both sides of the ratio are single-threaded, and neighbours come and go."""
    found = []
    for _ in range(3):
        started = time.process_time()
        made()
        found.append(time.process_time() - started)
    return min(found)


def ratio(trials: pd.DataFrame, resamples: int) -> float:
    """Time of one resample in a loop over that of one of ours, of ParanoiaEval's Table 3 from the same arrays."""
    arrays = pair_arrays(trials)
    agents = [
        [(plus.tolist(), minus.tolist()) for plus, minus in zip(*sides, strict=True)]
        for sides in zip(arrays.v_plus, arrays.v_minus, strict=True)
    ]
    loop = seconds(lambda: plain(agents, 100)) / 100
    return loop / seconds(lambda: paired_effects(arrays, group_kinds=("all",), resamples=resamples)) * resamples


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is broken")
    chosen = parser.parse_args()
    made = records()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    walls: list[float] = []
    cpus: list[float] = []
    ratios: list[float] = []
    for _ in range(chosen.rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        analysis = analyse(made, resamples=chosen.resamples)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        ratios.append(ratio(analysis.trials, chosen.resamples))
    rows = {name: len(getattr(analysis, name)) for name in ("trials", "effects", "runs", "scenarios", "transitions")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows}; {chosen.resamples} resamples, permutations; load {os.getloadavg()[0]:.1f} on {os.cpu_count()}")
    print(f"all tables: wall {[round(wall, 2) for wall in walls]} s, processor {[round(cpu, 2) for cpu in cpus]} s")
    print(f"peak {peak:.0f} MB, of which {before:.0f} MB records and imports")
    print(f"plain loop / ours, a resample of Table 3, each round: {[round(ratio) for ratio in ratios]}")
    bounds = Bounds()
    # One thread and no waiting: its CPU is its wall clock on a machine that has nothing else to do.
    bounds.show("time, best round", min(cpus), SECONDS, "s CPU")
    bounds.show("peak memory", peak, MEGABYTES, "MB")
    bounds.show("ours / plain loop", 1 / median(ratios), 1 / RATIO, "of the time")
    bounds.exit(check=chosen.check)


if __name__ == "__main__":
    main()
