-- The sessions that people have opened. Loaded by tools/sessions.py for each new store.

CREATE TABLE session (
    number   INTEGER PRIMARY KEY,
    user,
    scope,
    issued,
    lifetime
);
