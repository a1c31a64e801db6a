"""``paranoia agents install NAME[@VERSION] …`` and ``paranoia agents list``: command-line agents on this machine."""

from __future__ import annotations

import argparse
import sys
import time

from pytest_paranoia.agents import install
from pytest_paranoia.commands import base
from pytest_paranoia.errors import ParanoiaError
from pytest_paranoia.workspaces.cache import cache_root


def register(commands: base.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "agents",
        help="install command-line agents once per machine, or list them",
        description="Install the command-line agents that trials run, once per machine, or list what is installed.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    adding = actions.add_parser(
        "install",
        help="install agents into the machine cache",
        description="Install agents into the machine cache: with npm, or with uv from a hashed lock. What is pinned is "
        "checked; what is there already is left as it is. Several versions of an agent lie side by side.",
    )
    adding.add_argument("name", nargs="+", metavar="NAME[@VERSION]", help=f"one of {', '.join(install.tools())}")
    adding.add_argument("-v", "--verbose", action="store_true", help="show what npm or uv said about a failure")
    adding.set_defaults(run=run_install)
    listing = actions.add_parser(
        "list",
        help="list what is installed, with version, size and default",
        description="List the agents that can be installed and what is installed of them.",
    )
    listing.add_argument("--verify", action="store_true", help="read all files again; exit code 1 if one has changed")
    listing.set_defaults(run=run_list)


def run_install(options: argparse.Namespace) -> int:
    """Install the named agents; one that fails does not keep the others from being installed."""
    wanted = [install.parse(name) for name in dict.fromkeys(options.name)]
    code = base.OK
    for name, version in wanted:
        started = time.perf_counter()
        there = install.find(name, version) is not None
        try:
            made = install.install(name, version)
        except ParanoiaError as error:
            print(f"paranoia: {error if options.verbose else str(error).splitlines()[0]}", file=sys.stderr, flush=True)
            code = base.FAILED
            continue
        did = "was installed" if there else f"installed in {time.perf_counter() - started:.1f} s"
        base.say([f"{name} {version}: {did}, {_size(made.size)}, {_checked(made)}"])
    return code


def run_list(options: argparse.Namespace) -> int:
    """List the agents, each with its versions."""
    code = base.OK
    there = install.installations()
    for name, tool in install.tools().items():
        mine = [one for one in there if one.name == name]
        if not any(one.version == tool.default for one in mine):
            base.say([f"{name} {tool.default} (default): not installed; paranoia agents install {name}"])
        for one in mine:
            mark = " (default)" if one.version == tool.default else ""
            base.say([f"{name} {one.version}{mark}: {_size(one.size)}, {_checked(one)}, made {one.made[:10]}"])
            if options.verify and (damage := one.damage()):
                code = base.FAILED
                base.say([f"  {damage}; remove {one.folder} and install it again"])
    total = sum(one.size for one in there)
    base.say([f"{len(there)} installed, {_size(total)}, in {cache_root() / install.KIND}"])
    return code


def _size(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def _checked(one: install.Installed) -> str:
    loose = [name for name in one.packages if name not in one.pinned]
    return "as pinned" if not loose else f"not pinned: {', '.join(loose)}"
