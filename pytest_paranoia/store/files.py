"""Writes that are whole or absent: temporary name in the same file system, fsync, rename."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from pytest_paranoia.errors import ParanoiaError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class StoreError(ParanoiaError):
    """A run directory that cannot be created, read or written.

    The message names the path, what was found and what to do. ``path`` is the path; ``full`` is True where the disk
    (or the user's quota) is full.
    """

    def __init__(self, path: Path, found: str, remedy: str, *, full: bool = False) -> None:
        super().__init__(f"{printable(str(path))}: {found}. {remedy}")
        self.path = path
        self.full = full


def printable(text: str) -> str:
    """Return *text* with lone surrogates backslash-escaped: what UTF-8 and JSON can carry."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError inside into a StoreError about *path*; *doing* completes "could not …"."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreError(
                path,
                f"could not {doing}: the disk is full ({error.strerror})",
                "What was complete is untouched. Free space and go on with --paranoia-resume",
                full=True,
            ) from error
        raise StoreError(
            path,
            f"could not {doing}: {error.strerror or error}",
            "Check that the folder exists, is writable and is not changed by anything else",
        ) from error


def to_json(model: BaseModel, *, indent: int | None = None) -> bytes:
    """Return *model* as UTF-8 JSON. Lone surrogates, which JSON cannot carry, are backslash-escaped."""
    try:
        return model.model_dump_json(by_alias=True, indent=indent).encode("utf-8")
    except ValueError:  # PydanticSerializationError: some text came from os.fsdecode
        plain = _escaped(model.model_dump(by_alias=True))
        return json.dumps(plain, ensure_ascii=False, indent=indent).encode("utf-8")


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value


def sync_folder(folder: Path) -> None:
    """Make the names in *folder* durable. File systems that cannot do so for folders are left alone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EROFS}:
            raise
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> bool:
    """Make all that was written to the file system of *folder* durable, in one call; False where the system cannot.

    Raises OSError where something could not be written.
    """
    import ctypes  # Python has no call for it, few trials need it, and this import is not free

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return False
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if call(descriptor) == 0:
            return True
        number = ctypes.get_errno()
    finally:
        os.close(descriptor)
    if number in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    raise OSError(number, os.strerror(number), str(folder))


def sync_file(path: Path) -> None:
    """Make the content of one file durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_new(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Create *path*, which must not exist, with *content*; with *sync* on disk when this returns. Raises OSError."""
    with os.fdopen(os.open(path, _NEW_FILE, 0o666), "wb", buffering=0) as target:
        view = memoryview(content)
        while view:
            view = view[target.write(view) :]
        if sync:
            os.fsync(target.fileno())


def copy_new(source: Path, path: Path, *, sync: bool = True) -> None:
    """Copy the regular file *source* to *path*, which must not exist. Raises OSError, also where it is no such file.

    A symlink is never followed and a FIFO never waited for: a source may come from an agent's tree. With *sync* the
    copy is on disk when this returns.
    """
    with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as origin:
        if not stat.S_ISREG(os.fstat(origin.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(source))
        with os.fdopen(os.open(path, _NEW_FILE, 0o666), "wb") as target:
            _copy(origin, target)
            target.flush()
            if sync:
                os.fsync(target.fileno())


def _copy(origin: BinaryIO, target: BinaryIO) -> None:
    shutil.copyfileobj(origin, target, 1024 * 1024)


def write_atomic(path: Path, content: bytes) -> None:
    """Write or replace *path*: readers see the old content or the new, never a part. Raises StoreError."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with explained(path, "write"):
        try:
            write_new(temporary, content)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def remove_tree(path: Path) -> None:
    """Remove *path*, folder or file, as far as possible: what stays is named by the next load, never fatal."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
