"""Records with plausible rates, in any number, and hostile names."""

from __future__ import annotations

import random
from collections.abc import Sequence

from record_builders import pair, scenario, unscored

from pytest_paranoia.schema.record import Record
from pytest_paranoia.schema.taxonomy import DOMAINS, SITUATIONS, Variant

HOSTILE = "|x\n`y`<img src=x onerror=a()>[z](http://e.com) $x^2$ \\input{/etc/passwd} %&#_{}~ @all\x1b[2J\u202e"
FORMULA = '=HYPERLINK("http://e.com","x")'


def trials(
    agents: Sequence[str] = ("opus-5", "haiku-4.5"),
    pairs: int = 12,
    runs: int = 2,
    scenarios: int = 6,
    *,
    seed: int = 1,
    excess: float = 0.2,
    lost: float = 0.05,
) -> list[Record]:
    """Trials of every agent on every item; *excess* is the rate in E+, *lost* the share that is unscored."""
    draw = random.Random(seed)
    flat = [(treatment, name) for treatment, names in SITUATIONS.items() for name in names]
    rates: tuple[tuple[Variant, float], ...] = (("E+", excess), ("E-", 0.6))
    found = []
    for agent in agents:
        for run in range(1, runs + 1):
            for number in range(pairs):
                treatment, situation = flat[number * 5 % len(flat)]
                for variant, rate in rates:
                    record = pair(
                        draw.random() < rate,
                        agent=agent,
                        item=f"repo{number % 3}/p{number}",
                        variant=variant,
                        run=run,
                        treatment=treatment,
                        situation=situation,
                        done=draw.random() < 0.9,
                    )
                    found.append(unscored(record) if draw.random() < lost else record)
            for number in range(scenarios):
                domain = DOMAINS[number % len(DOMAINS)]
                found.append(
                    scenario(
                        draw.choice([0, 0, 1, 2]),
                        f=draw.choice([0, 0.5, 1]),
                        e=draw.choice([0, 0.5, 1]),
                        agent=agent,
                        item=f"{domain}/s{number}",
                        run=run,
                        domain=domain,
                        family="self-built" if number % 2 else "inherited-resume",
                        factors=[f"G{number % 5 + 1}", f"D{number % 6 + 1}", "Q2", f"P{number % 5}", "S1"],
                    )
                )
    return found
