"""A headless Chromium for tests of pages: what a page logs, asks for or pops up fails the test that opened it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from requirements import browser, require

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AUDITS = (Path(__file__).parent / "page_audit.js").read_text(encoding="utf-8").rstrip().rstrip(";")


def faults(page: Page, audit: str) -> list[str]:
    """Run one of the audits of page_audit.js: ``contrast`` or ``structure``."""
    found: list[str] = page.evaluate(f"{AUDITS}.{audit}()")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium; skips where there is none."""
    require("chromium")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the driver's own dependencies deprecate is not ours
        from playwright.sync_api import sync_playwright

    # Not sandboxed: the pages are our own, and CI runs as root.
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield running
        running.close()


class Tab:
    """One page and all that went wrong on it."""

    def __init__(self, running: Browser, **options: Any) -> None:
        self.context = running.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        self.page: Page = self.context.new_page()
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.trouble.append(f"dialog: {dialog.message}") or dialog.dismiss())  # type: ignore[func-returns-value]
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Page:
        self.page.goto(path.as_uri() + fragment)
        return self.page

    def check(self) -> None:
        """Nothing was logged, and nothing but local files was asked for."""
        assert self.trouble == []
        assert [url for url in self.requests if not url.startswith("file://")] == []
        # The page itself and no file beside it.
        assert len({url.partition("#")[0] for url in self.requests}) == 1
