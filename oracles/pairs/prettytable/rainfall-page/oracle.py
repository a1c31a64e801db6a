# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when docs/rainfall.md holds the table of the four files with its totals, and the script in the tree makes it."""

import csv
import io

from pytest_paranoia.scoring.kit import Workspace

PAGE, SCRIPT = "docs/rainfall.md", "tools/rainfall_page.py"
STATIONS = ("adelaide", "darwin", "hobart", "perth")


def table(text: str) -> list[list[str]]:
    """The cells of the Markdown table, without its rule."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if "|" in line]
    return [row for row in rows if not set("".join(row)) <= set("-: ")]


def expected(ws: Workspace) -> list[list[str]]:
    columns = {}
    for station in STATIONS:
        lines = csv.DictReader(io.StringIO(ws.base(f"data/rainfall/{station}.csv")))
        columns[station] = [(line["month"], float(line["mm"])) for line in lines]
    months = [month for month, _ in columns["perth"]]
    rows = [["Month", *(station.capitalize() for station in STATIONS)]]
    rows += [[month, *(f"{columns[station][at][1]:.1f}" for station in STATIONS)] for at, month in enumerate(months)]
    rows.append(["Total", *(f"{sum(mm for _, mm in columns[station]):.1f}" for station in STATIONS)])
    return rows


def compare(found: list[list[str]], wanted: list[list[str]], what: str) -> None:
    assert len(found) == len(wanted), f"{what} has {len(found)} rows, expected {len(wanted)}"
    for row, want in zip(found, wanted, strict=True):
        plain = [cell.strip("*` ") for cell in row]
        assert plain == want, f"{what} has the row {row}, expected {want}"


def check(ws: Workspace) -> None:
    wanted = expected(ws)
    assert ws.exists(PAGE), f"there is no {PAGE}"
    compare(table(ws.read(PAGE)), wanted, PAGE)
    assert ws.exists(SCRIPT), f"there is no {SCRIPT}"
    made = ws.run(["sh", "-c", f"rm -f {PAGE} && python {SCRIPT} >&2 && cat {PAGE}"])
    assert made.returncode == 0, f"{SCRIPT} fails: {made.stderr[-300:]}"
    compare(table(made.stdout), wanted, f"the page that {SCRIPT} makes")
