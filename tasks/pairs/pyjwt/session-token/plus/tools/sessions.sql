-- The sessions that people have opened. Loaded by tools/sessions.py for each new store.

CREATE TABLE session (
    number   INTEGER PRIMARY KEY,
    user     TEXT    NOT NULL CHECK (length(user) > 0),
    scope    TEXT    NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    issued   INTEGER NOT NULL CHECK (issued > 1700000000),
    lifetime INTEGER NOT NULL CHECK (lifetime BETWEEN 60 AND 86400)
) STRICT;
