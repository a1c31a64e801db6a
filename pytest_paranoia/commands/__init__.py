"""Subcommands of ``paranoia``, one module each: all work from a run directory and never run an agent.

Exit codes, the same for all: 0 done; 1 a check or threshold failed (and for ``prepare`` whatever failed); 2 usage, or a
run that cannot be read; 130 interrupted. Errors are one line on stderr that names the path.
"""
