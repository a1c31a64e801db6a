"""The sessions that people have opened, in a SQLite store."""

import sqlite3
from pathlib import Path

TABLE = Path(__file__).with_name("sessions.sql")


def create(path):
    """Make a store with the session table at *path* and return the connection."""
    store = sqlite3.connect(path)
    store.row_factory = sqlite3.Row
    store.executescript(TABLE.read_text())
    return store


def all_sessions(store):
    """Return the rows of all sessions, the oldest first."""
    return store.execute("SELECT * FROM session ORDER BY number").fetchall()
