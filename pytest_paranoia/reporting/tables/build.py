"""All tables of a run."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_paranoia.metrics.analysis import Analysis
from pytest_paranoia.reporting.tables.model import Table
from pytest_paranoia.reporting.tables.papers import paper_tables
from pytest_paranoia.reporting.tables.published import with_published
from pytest_paranoia.reporting.tables.tidy import tidy_tables


def all_tables(analysis: Analysis, agents: Sequence[str] = (), *, published: bool = False) -> list[Table]:
    """Return the papers' tables and every statistic of *analysis*; with *published* the papers' own rows too.

    *agents* come in this order in the papers' tables.
    """
    tables = [table.in_order(agents) for table in paper_tables(analysis)]
    return [*(with_published(tables) if published else tables), *tidy_tables(analysis)]
