"""``paranoia docs``: the pages that messages name; an installed package holds them as a checkout does."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from pytest_paranoia.commands import base


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "docs",
        help="print a page of the documentation, as error messages name them",
        description="Print a page of this version's documentation (Markdown), or without a name list the pages.",
    )
    parser.add_argument("name", nargs="?", metavar="PAGE", help="such as writing-pairs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a page or the list."""
    if options.name is not None:
        print(page(options.name), end="")
        return base.OK
    found = pages()
    width = max(map(len, found))
    for name, path in found.items():
        print(f"{name:<{width}}  {_title(path)}")
    return base.OK


def pages() -> dict[str, Path]:
    """Return the pages by name: of the checkout, or of the copy inside an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "_docs"
    folder = packed if packed.is_dir() else package.parent / "docs"
    # What a page is made from has a further suffix, as interventions.in.md.
    return {path.stem: path for path in sorted(folder.glob("*.md")) if "." not in path.stem}


def page(name: str) -> str:
    """Return the text of a page; it may be named as a link in the repository does. Raises UsageProblem."""
    known = pages()
    plain = name.partition("#")[0].removeprefix("docs/").removesuffix(".md")
    if plain in known:
        return known[plain].read_text(encoding="utf-8")
    close = difflib.get_close_matches(plain, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise base.UsageProblem(f"no page {name!r}; {hint}there: {', '.join(known)}")


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return next((line.removeprefix("# ").strip() for line in file if line.startswith("# ")), "")
