"""The HTML report: one file that opens offline, and one page per trial where asked for."""

from pytest_paranoia.reporting.html.write import write_report

__all__ = ["write_report"]
