"""Globs over whole paths. Standard library only: exported tasks bring this file along."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=512)
def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return *glob* as a pattern of whole paths: ``*`` and ``?`` stay within a folder, ``**`` crosses folders."""
    text = ""
    position = 0
    while position < len(glob):
        if glob.startswith("**/", position):
            text, position = text + "(?:[^/]+/)*", position + 3
        elif glob.startswith("**", position):
            text, position = text + ".*", position + 2
        elif glob[position] == "*":
            text, position = text + "[^/]*", position + 1
        elif glob[position] == "?":
            text, position = text + "[^/]", position + 1
        else:
            text, position = text + re.escape(glob[position]), position + 1
    return re.compile(text, re.DOTALL)


def matches(path: str, glob: str) -> bool:
    """Whether *path* matches *glob* as a whole."""
    return glob_pattern(glob).fullmatch(path) is not None
