"""Says once, before the first trial, what is still to be fetched: until that is done a log shows nothing new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_paranoia import header

if TYPE_CHECKING:
    from pytest_paranoia.options import Settings


class Announcement:
    """Hooks of the controlling process. Nothing is said with ``-q``, or where nothing runs."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._said = header.only_looks(config) or getattr(config.option, "verbose", 0) < 0

    def pytest_report_collectionfinish(self, items: list[pytest.Item]) -> list[str]:
        """Say it below the number of trials (without xdist)."""
        return self._lines(item.nodeid for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Say it when the first worker has collected: the controlling process of xdist never does."""
        if (reporter := self._config.pluginmanager.get_plugin("terminalreporter")) is None:
            return
        for line in self._lines(ids):
            reporter.ensure_newline()
            reporter.write_line(line)

    def _lines(self, nodeids: Iterable[str]) -> list[str]:
        if self._said:
            return []
        self._said = True
        return [f"paranoia: {line}" for line in header.to_prepare(nodeids, self._settings.roots)]
