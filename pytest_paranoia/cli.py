"""The ``paranoia`` command: ``prepare``, ``agents`` and ``models`` set a machine up, the others work on finished runs.

Exit codes: see :mod:`pytest_paranoia.commands`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from pytest_paranoia import __version__
from pytest_paranoia.commands import (
    agents,
    base,
    compare,
    docs,
    export,
    harbor_import,
    images,
    judge,
    label,
    models,
    plan,
    report,
    runs,
)
from pytest_paranoia.corpus import content_root, load
from pytest_paranoia.errors import ManifestError, ParanoiaError
from pytest_paranoia.schema.manifest import Repository
from pytest_paranoia.workspaces.cache import cache_root

_CODES = "Exit codes: 0 done, 1 a check or threshold failed, 2 usage or an unreadable run, 130 interrupted."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        try:
            options = _parser().parse_args(arguments)
            code: int = options.run(options)
        finally:
            sys.stdout.flush()
    except ParanoiaError as error:
        base.complain(error)
        return base.UNUSABLE
    except BrokenPipeError:
        # The reader, such as head, has enough; Python must not complain about it when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return base.OK
    except KeyboardInterrupt:
        print("paranoia: interrupted; what was finished is kept", file=sys.stderr)
        return base.INTERRUPTED
    except Exception as error:
        import pytest  # only now: no command should wait for it to print its help

        if not isinstance(error, pytest.UsageError):
            raise
        base.complain(error)
        return base.UNUSABLE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="paranoia", description="Tools of pytest-paranoia.", epilog=_CODES)
    parser.add_argument("--version", action="version", version=f"pytest-paranoia {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    prepare = commands.add_parser(
        "prepare",
        help="fetch repositories and build their test environments, once per machine",
        description="Fetch repositories by hash, import them reproducibly and build their test environments, "
        "once per machine. Afterwards everything works offline.",
    )
    prepare.add_argument("name", nargs="*", metavar="NAME", help="folder below tasks/pairs (default: all of them)")
    prepare.add_argument(
        "--items", type=Path, metavar="DIR", help="folder that holds tasks/ (default: the built-in items)"
    )
    prepare.add_argument(
        "-j",
        "--jobs",
        type=base.positive,
        default=2 * (os.cpu_count() or 1),
        metavar="N",
        help="repositories at a time (default: two for each processor, as half of the time goes into waiting)",
    )
    prepare.add_argument("-v", "--verbose", action="store_true", help="show what the tools said about a failure")
    prepare.set_defaults(run=_run_prepare)
    for command in (harbor_import, agents, images, models, report, compare, export, plan, runs, judge, label, docs):
        command.register(commands)
    return parser


def _run_prepare(options: argparse.Namespace) -> int:
    return _prepare(options.items, options.name, options.jobs, options.verbose)


def _prepare(items: Path | None, names: Sequence[str], threads: int, verbose: bool) -> int:
    root = items if items is not None else content_root()
    found = {path.parent.name: path for path in sorted(root.glob("tasks/pairs/*/repository.toml"))}
    if not found:
        raise ManifestError(f"no tasks/pairs/*/repository.toml below {root}; name the folder with --items DIR")
    if unknown := sorted(set(names) - set(found)):
        raise ManifestError(
            f"no repository {', '.join(unknown)} below {root / 'tasks/pairs'}; there: {', '.join(found)}"
        )
    from pytest_paranoia.workspaces.process import in_threads

    failed = 0
    calls = [partial(_prepare_one, name, found[name]) for name in dict.fromkeys(names) or found]
    with closing(in_threads(calls, threads)) as results:
        for result in results:
            try:
                print(result(), flush=True)
            except ParanoiaError as error:
                failed += 1
                _complain(error, verbose)
    print(f"{len(names or found) - failed} prepared, {failed} failed, in {cache_root()}", flush=True)
    return 1 if failed else 0


def _prepare_one(name: str, manifest: Path) -> str:
    from pytest_paranoia.workspaces.cache import built
    from pytest_paranoia.workspaces.prepare import prepare_repository

    start = time.perf_counter()
    built.kinds.clear()
    prepared = prepare_repository(manifest.parent, load(manifest, Repository, str(manifest)))
    words = {"sources": "fetched", "repositories": "imported", "envs": "environment built"}
    done = ", ".join(words[kind] for kind in words if kind in built.kinds) or "was prepared"
    return f"{name}: {done} ({time.perf_counter() - start:.1f} s), commit {prepared.commit}"


def _complain(error: ParanoiaError, verbose: bool) -> None:
    text = str(error)
    print(f"paranoia: {text if verbose or isinstance(error, ManifestError) else text.splitlines()[0]}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
