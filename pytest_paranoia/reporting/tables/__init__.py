"""Tables of a run: the papers' layouts and every statistic, as data frames that know how their columns are shown."""

from pytest_paranoia.reporting.tables.model import Column, Table

__all__ = ["Column", "Table"]
