"""The page's server: on the loopback only, behind a secret in its address, one sitting at a time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.labelling.desk import Desk, Refused
from pytest_paranoia.store.files import printable

HOST: Final = "127.0.0.1"
_TYPES: Final = {"index.html": "text/html", "label.js": "text/javascript", "label.css": "text/css"}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_LARGEST: Final = 8 * 1024 * 1024
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Serves one desk. ``start`` returns the address to open.

    With the *secret* and the *port* of an earlier sitting an open page goes on where its server went away.
    """

    def __init__(self, desk: Desk, port: int = 0, secret: str | None = None) -> None:
        self._desk = desk
        self._port = port
        self._secret = secret or secrets.token_urlsafe(24)
        self._runner: web.AppRunner | None = None
        # The desk reads and writes files; one request after the other keeps them in order.
        self._turn = asyncio.Lock()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._port

    async def start(self) -> str:
        """Listen and return the page's address. Raises OSError where the port is taken."""
        app = web.Application(client_max_size=_LARGEST, middlewares=[self._guarded])
        base = f"/{self._secret}"
        app.router.add_get(f"{base}/", self._page)
        app.router.add_get(base + "/{name:label\\.(?:js|css)}", self._page)
        app.router.add_get(f"{base}/api/list", self._list)
        app.router.add_get(base + "/api/trial/{number:\\d{1,9}}", self._open)
        app.router.add_put(base + "/api/trial/{number:\\d{1,9}}", self._save)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self._port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]
        return f"http://{HOST}:{self._port}{base}/"

    async def stop(self) -> None:
        """Stop listening; what was saved is on disk already."""
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        # Another page in the same browser may send requests here, or have a name of its own resolve to this host.
        if request.host not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            return web.Response(status=403, text="this page answers under its own address only\n")
        try:
            answer = await handler(request)
        except Refused as error:
            answer = _json({"error": printable(self._desk.blinded(str(error))), **error.details}, error.status)
        except ParanoiaError as error:
            answer = _json({"error": printable(self._desk.blinded(str(error)))}, 500)
        answer.headers.update(
            {
                "Content-Security-Policy": _POLICY,
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
            }
        )
        return answer

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", "index.html")
        text = files("pytest_paranoia.labelling").joinpath("page", name).read_text(encoding="utf-8")
        return web.Response(text=text, content_type=_TYPES[name], charset="utf-8")

    async def _do(self, action: Callable[[], dict[str, Any]]) -> web.StreamResponse:
        async with self._turn:
            return _json(await asyncio.to_thread(action))

    async def _list(self, request: web.Request) -> web.StreamResponse:  # noqa: ARG002
        return await self._do(self._desk.listing)

    async def _open(self, request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        return await self._do(lambda: self._desk.opened(number))

    async def _save(self, request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        if request.content_type != "application/json":
            raise Refused(415, f"{request.content_type} given, expected application/json")
        try:
            given = await request.json()
        except ValueError:
            raise Refused(422, "the body is no JSON") from None
        if not isinstance(given, dict):
            raise Refused(422, "the body is no JSON object")
        return await self._do(lambda: self._desk.save(number, given))


def _json(data: dict[str, Any], status: int = 200) -> web.Response:
    return web.json_response(data, status=status)
