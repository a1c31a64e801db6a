"""``python -m pytest_paranoia.relay``: started by ``client.Relay``, never by hand."""

from __future__ import annotations

from pytest_paranoia.relay.server import main

if __name__ == "__main__":
    main()
