"""Draw the summary of a real run as docs/summary.svg: ``python docs/make_picture.py reports/RUN``.

The lines are those that pytest prints at the end of that run, by the same code, from the same files; nothing is posed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from pytest_paranoia.metrics.gates import Gate
from pytest_paranoia.reporting import terminal
from pytest_paranoia.reporting.findings import Style
from pytest_paranoia.store import RunDirectory

TARGET = Path(__file__).with_name("summary.svg")
COLUMNS = terminal.WIDTH
CHARACTER, LINE, MARGIN, FONT = 7.2, 17, 14, 12
PLAIN, PAPER = "#d8dee9", "#1f2430"
COLOURS: dict[str, str] = {"title": "#ffffff", "good": "#8fce7f", "bad": "#f28b82", "warn": "#f0c674", "dim": "#8a93a5"}
FAMILY = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_MARKED = re.compile("\x02(\\w+)\x03(.*?)\x04")


def gates_of(options: Mapping[str, object]) -> list[Gate]:
    """Return the gates that the run was given, from its run.json (``"min tsr 100"``)."""
    given = options.get("gates")
    words = [str(text).split() for text in given] if isinstance(given, list) else []
    make = {"min": Gate.at_least, "max": Gate.at_most}
    return [make[direction](metric, float(threshold)) for direction, metric, threshold in words]


def marked(text: str, style: Style) -> str:
    """Put *style* around *text* in characters that no line of a summary holds."""
    return f"\x02{style}\x03{text}\x04"


def pieces(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield (column, style, text) of every stretch of *line*; the empty style is plain."""
    at = column = 0
    for match in _MARKED.finditer(line):
        if before := line[at : match.start()]:
            yield column, "", before
            column += len(before)
        yield column, match[1], match[2]
        column += len(match[2])
        at = match.end()
    if line[at:]:
        yield column, "", line[at:]


def text_element(column: int, row: int, style: str, text: str) -> str:
    """Return one stretch of text. Its length is fixed, so that columns align whatever font a reader has."""
    x, y = MARGIN + column * CHARACTER, MARGIN + (row + 0.75) * LINE
    colour = f' fill="{COLOURS[style]}"' if style else ""
    weight = ' font-weight="bold"' if style == "title" else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" textLength="{len(text) * CHARACTER:.1f}" lengthAdjust="spacingAndGlyphs"'
        f'{colour}{weight} xml:space="preserve">{escape(text)}</text>'
    )


def svg(lines: list[str]) -> str:
    """Return *lines* as a picture of a terminal."""
    width, height = 2 * MARGIN + COLUMNS * CHARACTER, 2 * MARGIN + len(lines) * LINE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" font-family="{FAMILY}" '
        f'font-size="{FONT}" fill="{PLAIN}">\n<title>The summary that pytest --paranoia prints</title>\n'
        f'<rect width="100%" height="100%" rx="6" fill="{PAPER}"/>'
    )
    body: list[str] = []
    for row, line in enumerate(lines):
        for column, style, text in pieces(line):
            bare = text.lstrip(" ")
            if bare.strip():
                body.append(text_element(column + len(text) - len(bare), row, style, bare.rstrip(" ")))
    return "\n".join([head, *body, "</svg>"]) + "\n"


def main() -> None:
    """Write the picture of the run named on the command line."""
    parser = argparse.ArgumentParser(description="Draw the summary of a run as SVG.")
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("--output", type=Path, default=TARGET, help="the picture (default: docs/summary.svg)")
    options = parser.parse_args()
    run = RunDirectory.open(options.run)
    summary = run.summary(gates_of(run.manifest.options))
    banner = " paranoia ".center(COLUMNS, "=")
    options.output.write_text(svg([banner, *terminal.lines(summary, marked, encoding="utf-8")]), encoding="utf-8")


if __name__ == "__main__":
    main()
