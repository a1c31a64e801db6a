"""The HTML report: one file that opens offline, and one page per trial where asked for."""

from pytest_paranoia.reporting.html.write import pages_of, write_report

__all__ = ["pages_of", "write_report"]
