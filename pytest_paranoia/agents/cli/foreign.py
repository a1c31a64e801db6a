"""Reading what a program left in its folder, which the agent can write to as well.

The folder lies on the host: a link that an agent puts there must not lead us anywhere else, and what it writes there
may be anything. So files are opened step by step without following links, and data bases are read from a copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

LARGEST = 1024**3
"""Most bytes of one file that are read."""


@contextmanager
def opened(root: Path, name: str) -> Iterator[BinaryIO | None]:
    """Open the regular file *name* below *root* for reading; None where there is none.

    Raises ValueError where a link or something that is no file is in the way, or where it is too large.
    """
    descriptors = [os.open(root, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        *folders, last = PurePosixPath(name).parts
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            for folder in folders:
                descriptors.append(os.open(folder, flags | os.O_DIRECTORY, dir_fd=descriptors[-1]))
            found = os.open(last, flags, dir_fd=descriptors[-1])
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise ValueError(f"{name}: not a file that can be read without following links: {error}") from error
        descriptors.append(found)
        state = os.fstat(found)
        if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
            raise ValueError(f"{name}: expected a file of at most {LARGEST} bytes, found {state.st_size} bytes")
        with os.fdopen(found, "rb", closefd=False) as stream:
            yield stream
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def text(root: Path, name: str) -> str | None:
    """Return the text of a file below *root*, None where there is none. Raises ValueError as ``opened`` does."""
    with opened(root, name) as stream:
        return None if stream is None else stream.read().decode("utf-8")


@contextmanager
def database(root: Path, name: str) -> Iterator[sqlite3.Connection | None]:
    """Open a copy of an SQLite data base below *root*, what is still in its log included; None where there is none.

    Nobody may be writing to it any more. Raises ValueError for one that cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        for ending in ("", "-wal"):
            with opened(root, name + ending) as stream:
                if stream is None:
                    if not ending:
                        yield None
                        return
                    continue
                with Path(f"{copy}{ending}").open("wb") as target:
                    shutil.copyfileobj(stream, target)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise ValueError(f"{name}: not a data base that can be read: {error}") from error
