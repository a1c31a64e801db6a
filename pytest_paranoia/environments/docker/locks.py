"""Locks that all sessions of a user on this machine share; the kernel gives one back however its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from pytest_paranoia.errors import InfrastructureError
from pytest_paranoia.workspaces.cache import cache_root


def folder(reason: str) -> Path:
    """Return the folder of locks, made where it is missing. Raises InfrastructureError with *reason*."""
    found = cache_root() / "locks"
    try:
        found.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(error, reason) from error
    return found


def unusable(error: OSError, reason: str) -> InfrastructureError:
    """Return the error that tells of a cache in which nothing can be written."""
    return InfrastructureError(
        reason, f"the cache folder {cache_root()} cannot be used: {error} (PARANOIA_CACHE names another)"
    )


@contextmanager
def only_one(name: str, what: str, seconds: float, reason: str) -> Iterator[None]:
    """Hold the lock *name*. Raises InfrastructureError with *reason* after *seconds* of waiting for another *what*."""
    lock = filelock.FileLock(folder(reason) / f"docker-{name}.lock", timeout=seconds)
    try:
        held = lock.acquire()
    except filelock.Timeout as error:
        raise InfrastructureError(reason, f"waited {seconds:.0f} s for another {what}") from error
    except OSError as error:
        raise unusable(error, reason) from error
    with held:
        yield


@contextmanager
def building(reason: str) -> Iterator[None]:
    """Tell ``idle`` that an image is in the making: what it consists of has no name until then."""
    with _open(reason) as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def idle(reason: str) -> Iterator[bool]:
    """Yield whether no image is in the making, and see to it that none is begun meanwhile."""
    with _open(reason) as lock:
        free = False
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        yield free


@contextmanager
def _open(reason: str) -> Iterator[int]:
    try:
        lock = os.open(folder(reason) / "docker-building.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unusable(error, reason) from error
    try:
        yield lock
    finally:
        os.close(lock)
