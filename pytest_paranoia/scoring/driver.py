"""The process in which one oracle or replay runs: ``python -I -S driver.py KIND MODULE FD PACKAGE_PARENT``.

Its socket is the only way a result can leave it; code of the agent never runs in it and never sees the socket.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
from typing import Any


def _load(path: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "oracle", "__file__": path}
    with open(path, "rb") as source:  # noqa: PTH123 -- pathlib, like traceback below, would be imported for this alone
        exec(compile(source.read(), path, "exec"), namespace)
    return namespace


def _events(kind: str, returned: Any, send: Any) -> None:
    from pytest_paranoia.scoring.kit import Event

    for event in returned:
        if not isinstance(event, Event):
            raise TypeError(f"{kind} yielded {event!r}, expected an Event")
        if not isinstance(event.ok, bool):
            raise TypeError(f"event {event.name!r}: ok is {event.ok!r}, expected True or False")
        send({"op": "event", "name": str(event.name), "ok": event.ok, "detail": str(event.detail)[:500]})


def _end_with(descriptor: int) -> None:
    """End this process when the host is gone: a hanging oracle must not outlive a killed session."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    os._exit(1)


def main() -> None:
    """Run the module and report how it ended."""
    kind, module, descriptor, parent = sys.argv[1:5]
    _thread.start_new_thread(_end_with, (int(descriptor),))
    sys.path.append(parent)
    from pytest_paranoia.scoring.kit import ProbeFailed, Workspace

    workspace = Workspace(int(descriptor))
    try:
        namespace = _load(module)
        if kind == "oracle":
            returned = namespace["check"](workspace)
            if returned is not None:
                raise TypeError(f"check() returned {returned!r}, expected None: assert instead")
        elif kind == "alleged" and "alleged" not in namespace:
            workspace.send({"op": "absent"})
            return
        else:
            _events(kind, namespace[kind](workspace), workspace.send)
    except AssertionError as error:
        import traceback

        text = str(error) or traceback.extract_tb(error.__traceback__)[-1].line or repr(error)
        if kind == "oracle" or isinstance(error, ProbeFailed):
            workspace.send({"op": "failed", "message": text})
        else:
            workspace.send({"op": "error", "message": f"{kind} raised AssertionError: {text}; yield Event(ok=False)"})
    except RecursionError as error:
        # Parsers of JSON and TOML recurse as deep as the text nests, and nothing but the final state nests like that.
        workspace.send({"op": "failed", "message": f"a file of the final state cannot be read: {error}"})
    except Exception as error:
        import traceback

        workspace.send(
            {"op": "error", "message": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        )
    else:
        workspace.send({"op": "done"})


if __name__ == "__main__":
    main()
