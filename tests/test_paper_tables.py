"""The papers' printed tables, from records that realise them, through the functions that users call."""

from __future__ import annotations

from statistics import fmean

import pandas as pd
import pytest
from paper_records import (
    AGENTS,
    CAVE,
    DELTAS,
    PAPER,
    ROUNDING,
    RUN_TABLES,
    cave_records,
    excess_counts,
    published_records,
    valid_runs,
)

from pytest_paranoia.metrics.analysis import Analysis, analyse
from pytest_paranoia.metrics.frame import frame
from pytest_paranoia.metrics.pairing import POOLED
from pytest_paranoia.metrics.permutations import spearman
from pytest_paranoia.metrics.scenarios import scenario_scores
from pytest_paranoia.schema.taxonomy import TREATMENTS

GROUPS = ("all", *TREATMENTS)
TSR = {"tsr_all": "tsr", "tsr_e_plus": "tsr_plus", "tsr_e_minus": "tsr_minus"}
FAMILIES = {"Claude mean": AGENTS[:4], "GPT mean": AGENTS[4:]}
DOUBLE_ROUNDED = {
    ("table 2", "Haiku-4.5", "er_transfer"): 28.139,
    ("table 15", "Claude mean", "er_avoidance"): 16.042,
    ("table 16", "Claude mean", "er_all"): 51.145,
    ("table 16", "Claude mean", "er_avoidance"): 17.047,
}
"""The only printed cells that the others do not give: each is the mean of numbers that had been rounded before."""


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyse(published_records(), resamples=500)


@pytest.fixture(scope="module")
def effects(analysis: Analysis) -> pd.DataFrame:
    return analysis.effects.set_index(["agent", "group"])


@pytest.fixture(scope="module")
def runs(analysis: Analysis) -> pd.DataFrame:
    return analysis.runs.set_index(["run", "agent", "group"])


def test_the_run_tables_and_deltas_allow_one_count_only() -> None:
    for run, table in enumerate(RUN_TABLES, 1):
        for agent in AGENTS:
            assert len(excess_counts(table[agent], DELTAS[agent][f"run{run}"])) == 1, (run, agent)


def printed(table: dict[str, dict[str, float]], agent: str) -> dict[tuple[str, str], tuple[str, float]]:
    """Cells of one row: (group, our column without the kind of ER) to (its key, value)."""
    row = table[agent]
    cells = {("all", ours): (key, row[key]) for key, ours in TSR.items()}
    for group in GROUPS:
        cells |= {(group, metric): (f"{metric}_{group}", row[f"{metric}_{group}"]) for metric in ("vr", "er")}
    return cells


@pytest.mark.parametrize("run", [1, 2, 3])
def test_run_tables_15_to_17(runs: pd.DataFrame, run: int) -> None:
    table, name = RUN_TABLES[run - 1], f"table {14 + run}"
    for agent in AGENTS:
        for (group, metric), (key, value) in printed(table, agent).items():
            assert runs.loc[run, agent, group][metric] == pytest.approx(value, abs=ROUNDING), (agent, key)
    for family, members in FAMILIES.items():
        for (group, metric), (key, value) in printed(table, family).items():
            ours = fmean(runs.loc[run, agent, group][metric] for agent in members)
            value = DOUBLE_ROUNDED.get((name, family, key), value)
            assert ours == pytest.approx(value, abs=ROUNDING), (family, key)


def test_table_2_is_the_mean_of_the_runs(effects: pd.DataFrame) -> None:
    table = PAPER["table2_mean_of_3_runs"]
    names = {"er": "er_mean"}
    for agent in AGENTS:
        for (group, metric), (key, value) in printed(table, agent).items():
            value = DOUBLE_ROUNDED.get(("table 2", agent, key), value)
            assert effects.loc[agent, group][names.get(metric, metric)] == pytest.approx(value, abs=ROUNDING)
    for family, members in FAMILIES.items():
        for (group, metric), (key, value) in printed(table, family).items():
            ours = fmean(effects.loc[agent, group][names.get(metric, metric)] for agent in members)
            assert ours == pytest.approx(value, abs=ROUNDING), (family, key)


def test_double_rounded_cells_differ_by_their_last_digit_only() -> None:
    tables = {"table 2": PAPER["table2_mean_of_3_runs"], "table 15": RUN_TABLES[0], "table 16": RUN_TABLES[1]}
    for (table, agent, key), exact in DOUBLE_ROUNDED.items():
        assert ROUNDING < abs(tables[table][agent][key] - exact) < 0.1


def test_mean_of_runs_and_pooled_er_are_both_there(effects: pd.DataFrame) -> None:
    sonnet = effects.loc["Sonnet-4.6", "all"]
    assert (round(sonnet["er_mean"], 1), round(sonnet["er_pooled"], 1)) == (62.6, 62.8)


@pytest.mark.parametrize("agent", [*AGENTS, "Pooled"])
def test_table_3(effects: pd.DataFrame, agent: str) -> None:
    row = PAPER["table3_paired_effects"][agent]
    ours = effects.loc[POOLED if agent == "Pooled" else agent, "all"]
    for key, column in {"e_plus": "vr", "e_minus": "rate_minus", "delta": "delta", "er": "er_pooled"}.items():
        assert ours[column] == pytest.approx(row[key], abs=ROUNDING), key
    # Delta and ER also follow from the two printed rates, as far as their rounding goes.
    assert row["e_minus"] - row["e_plus"] == pytest.approx(row["delta"], abs=0.15 + 1e-9)
    slack = 100 * 0.05 * (row["e_plus"] + row["e_minus"]) / row["e_minus"] ** 2 + ROUNDING
    assert 100 * (1 - row["e_plus"] / row["e_minus"]) == pytest.approx(row["er"], abs=slack)


def test_table_5_averages_agents(effects: pd.DataFrame) -> None:
    """Its ER is the mean over agents of means over runs, not the ratio of its own columns (Transfer: 7.9, not 3.8)."""
    for treatment, row in PAPER["table5_by_treatment"].items():
        ours = effects.loc[POOLED, treatment.lower()]
        for key, column in {"e_plus": "vr", "e_minus": "rate_minus", "er": "er_mean"}.items():
            assert ours[column] == pytest.approx(row[key], abs=ROUNDING), (treatment, key)
    assert round(effects.loc[POOLED, "transfer"]["er_pooled"], 1) == 3.8


@pytest.mark.parametrize("agent", AGENTS)
def test_table_18(analysis: Analysis, runs: pd.DataFrame, agent: str) -> None:
    row, ours = DELTAS[agent], analysis.interactions.set_index("agent").loc[agent]
    for run in (1, 2, 3):
        assert runs.loc[run, agent, "all"]["delta"] == pytest.approx(row[f"run{run}"], abs=ROUNDING)
    assert ours["delta"] == pytest.approx(row["pooled"], abs=ROUNDING)
    assert ours["range"] == pytest.approx(row["range"], abs=ROUNDING)


def test_spearman_of_success_against_violations(analysis: Analysis) -> None:
    """Section 6, observation 2: rho 0.55, p = 0.17; the exact test over 8! orders gives .171, the t test .160."""
    row = analysis.correlations.set_index("group").loc["all"]
    assert (round(row["rho"], 2), round(row["p"], 2), row["method"], row["agents"]) == (0.55, 0.17, "exact", 8)
    table = PAPER["table2_mean_of_3_runs"]
    rho, test = spearman([table[a]["tsr_all"] for a in AGENTS], [table[a]["vr_all"] for a in AGENTS])
    assert (round(rho, 2), round(test.p, 2)) == (0.55, 0.17)


def test_printed_violations_are_as_many_as_the_share_that_passes_needs(effects: pd.DataFrame) -> None:
    """92.7 % of the E+ runs with excess pass their oracle: 1,076 of 1,161 runs, a whole number that rounds so."""
    violations = effects.loc[POOLED, "all"]["violations"]
    assert violations == 1161
    assert round(100 * 1076 / violations, 1) == 92.7


def test_every_model_of_cave_bench_fits_one_number_of_valid_runs() -> None:
    found = {model: valid_runs(scores) for model, scores in CAVE.items()}
    assert len(found) == 14
    assert all(len(numbers) == 1 for numbers in found.values())
    assert found["Claude-Opus-5"] == [356]


@pytest.mark.parametrize("model", CAVE)
def test_cave_scores(model: str) -> None:
    (ours,) = scenario_scores(frame(cave_records(model)), group_kinds=("all",), resamples=10).to_dict("records")
    for metric in ("roh", "ocr", "fcs", "fcr", "erf"):
        assert ours[metric] == pytest.approx(CAVE[model][metric], abs=0.0055), metric
    # ROH is known to two digits only, so the mean of the three may miss the printed one by a third of that more.
    assert ours["cave"] == pytest.approx(CAVE[model]["cave"], abs=0.005 + 0.005 / 3 + 0.0002)
    assert ours["cave"] == pytest.approx((ours["roh"] + ours["fcs"] + ours["erf"]) / 3)
    assert ours["valid"] == sum(ours[f"n_{path}"] for path in ("GR", "PP", "VC", "EO", "CD", "SD"))
