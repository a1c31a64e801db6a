"""Tables as files: CSV, Parquet, LaTeX and JSON, each written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.reporting.tables.latex import latex
from pytest_paranoia.reporting.tables.model import Table
from pytest_paranoia.reporting.text import one_line
from pytest_paranoia.store.files import explained, printable, write_atomic

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


class MissingParquet(ParanoiaError):
    """Parquet was asked for and pyarrow is not installed."""


def write_tables(tables: Iterable[Table], folder: Path, form: str) -> list[Path]:
    """Write each of *tables* as ``<name>.<ending>`` into *folder*; return the paths. Raises ParanoiaError."""
    if form == "parquet" and find_spec("pyarrow") is None:
        raise MissingParquet(
            "Parquet needs pyarrow, which is missing: pip install 'pytest-paranoia[parquet]', or use another format"
        )
    ending, encode = FORMATS[form]
    with explained(folder, "create the folder of the tables"):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        path = folder / f"{table.name}.{ending}"
        write_atomic(path, encode(table))
        written.append(path)
    return written


def csv(table: Table) -> bytes:
    """Return *table* as CSV with undefined values empty; text that a spreadsheet would run as a formula is quoted.

    Such text gets a leading apostrophe (OWASP, CSV injection): what an agent is called comes from outside. Control
    characters are escaped. Numbers are numbers, also negative ones.
    """
    text: str = _safe_for_spreadsheets(table.frame).to_csv(index=False, lineterminator="\n")
    return text.encode("utf-8", "backslashreplace")


def _safe_for_spreadsheets(frame: pd.DataFrame) -> pd.DataFrame:
    changed = {}
    for name in frame.columns:
        if pd.api.types.is_string_dtype(frame[name].dtype):
            texts = [_disarmed(text) for text in frame[name]]
            changed[name] = pd.Series(texts, index=frame.index, dtype="string")
    return frame.assign(**changed)


def _disarmed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    # A bare carriage return ends a row for some readers and not for others.
    shown = text if text.isprintable() else one_line(text, "utf-8")
    return f"'{shown}" if text.startswith(_FORMULA) or shown.startswith(_FORMULA) else shown


def as_json(table: Table) -> bytes:
    """Return *table* as an object: name, title, source, notes, and its rows; undefined is null."""
    rows = [{str(key): _value(value) for key, value in row.items()} for row in table.frame.to_dict("records")]
    heads = {"table": table.name, "title": table.title, "source": table.source, "notes": table.notes()}
    whole: dict[str, Any] = {**heads, "rows": rows}
    return (json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode("utf-8", "backslashreplace")


def _value(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return printable(plain) if isinstance(plain, str) else plain


def parquet(table: Table) -> bytes:
    """Return *table* as Parquet, typed as the frame is."""
    buffer = BytesIO()
    table.frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()


FORMATS: Final[Mapping[str, tuple[str, Callable[[Table], bytes]]]] = {
    "csv": ("csv", csv),
    "parquet": ("parquet", parquet),
    "latex": ("tex", lambda table: latex(table).encode("utf-8", "backslashreplace")),
    "json": ("json", as_json),
}
"""What ``paranoia export --format`` takes: the file's ending and the encoder."""
