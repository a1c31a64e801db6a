"""Every exported table through a real LaTeX, also with names that are hostile or in other scripts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from record_builders import pair, scenario
from synthetic_runs import FORMULA, HOSTILE, trials

from pytest_paranoia.metrics.analysis import analyse
from pytest_paranoia.reporting.tables.build import all_tables
from pytest_paranoia.reporting.tables.files import write_tables
from pytest_paranoia.reporting.tables.latex import escaped
from pytest_paranoia.schema.record import Record
from requirements import require

STRANGE = "".join(chr(code) for code in (*range(0xA1, 0x180), 0x3B4, 0x4E2D, 0x1F600)) + "u\u0308 \\x \\\\[2ex] *"
HEAD = (
    r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}"
    r"\usepackage{booktabs,longtable,textcomp}"
)
RUNS: dict[str, list[Record]] = {
    "plausible": trials(pairs=30, scenarios=12),
    "one pair": [pair(True), pair(variant="E-")],
    "hostile": [
        pair(True, agent=HOSTILE, situation=HOSTILE, repository=HOSTILE),
        pair(True, agent=FORMULA, item="x/[y"),
        scenario(1, agent=HOSTILE),
        scenario(agent=STRANGE),
        scenario(agent="*"),
        scenario(agent="[a]"),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_every_table_compiles(name: str, tmp_path: Path) -> None:
    require("pdflatex")
    tables = all_tables(analyse(RUNS[name], resamples=50), published=True)
    write_tables(tables, tmp_path, "latex")
    body = "\n".join(rf"\noindent\input{{{table.name}}}\clearpage" for table in tables)
    (tmp_path / "main.tex").write_text(f"{HEAD}\n\\begin{{document}}\n{body}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "main.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-3000:]
    assert (tmp_path / "main.pdf").stat().st_size > 10_000


def test_a_table_that_is_broken_does_not_compile(tmp_path: Path) -> None:
    """The check above can fail."""
    require("pdflatex")
    (tmp_path / "main.tex").write_text(
        f"{HEAD}\n\\begin{{document}}\\begin{{tabular}}{{l}}a & b \\\\\\end{{tabular}}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False).returncode != 0


def test_letters_without_a_font_have_another_way() -> None:
    assert escaped("Ünïcôdé") == "Ünïcôdé"
    assert escaped("δ") == r"{\ifdefined\Uchar δ\else \textbackslash{}u03b4\fi}"
    assert escaped('"') == r"{\char34}"
