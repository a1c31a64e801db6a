"""Subcommands of ``paranoia``, one module each: they work on run directories or set the machine up; none runs an agent.

Exit codes, the same for all: 0 done; 1 a check or threshold failed (and where the machine is set up whatever failed); 2
usage, or a run that cannot be read; 130 interrupted. Errors are one line on stderr that names the path.
"""
