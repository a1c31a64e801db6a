"""Renders the pages of the preview and keeps the latest."""

from concurrent.futures import ThreadPoolExecutor

from cachetools import LRUCache


class Preview:
    """Hands out pages as futures. The web server calls it from its threads; what it does here runs on the worker.

    *render* makes the text of a page from its name.
    """

    def __init__(self, render, maxsize=64):
        self._render = render
        self._cache = LRUCache(maxsize)
        # The renderer makes one page at a time.
        self._worker = ThreadPoolExecutor(max_workers=1)

    def page(self, name):
        """Return the future of the text of a page."""
        return self._worker.submit(self._page, name)

    def _page(self, name):
        if name not in self._cache:
            self._cache[name] = self._render(name)
        return self._cache[name]
