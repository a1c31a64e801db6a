"""A program that looks for everything it should not find, to be run where an agent's code runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_PROGRAM = """
import json, os, re, subprocess, sys
NAMES = {"card.toml", "truth.toml", "oracle.py", "replay.py", "lexicon.toml", "oracles", "accusations", "judge",
         "record.json", "trajectory.json", "reports", "docker.sock", "pytest_paranoia", "driver.err"}
UNIQUE = ["card.toml", "truth.toml", "pytest_paranoia", "docker.sock"]
# Spelt backwards: the words must not be found in this program itself.
WORDS = re.compile(b"|".join(re.escape(word[::-1].encode()) for word in __WORDS__))
SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ssl", "/etc/ca-certificates", __PREFIX__]
APART = {*SYSTEM, "/proc", "/sys", "/dev"}
found = {"names": [], "words": [], "processes": {}, "mounts": [], "environment": sorted(os.environ)}

def look(where, data):
    found["words"] += [[where, word.decode()] for word in WORDS.findall(data)]

def read(path):
    try:
        with open(path, "rb") as stream: return stream.read(1 << 22)
    except OSError: return b""

for folder, subfolders, files in os.walk("/"):
    subfolders[:] = [name for name in subfolders if os.path.join(folder, name) not in APART]
    for name in [*subfolders, *files]:
        path = os.path.join(folder, name)
        if name in NAMES: found["names"].append(path)
        look(path, path.encode())
        if name in files and os.path.isfile(path):
            look(path, read(path))
if __EVERYWHERE__:
    # Other programs have an oracle.py too; none has one of these.
    names = [word for name in UNIQUE for word in ("-o", "-name", name)][1:]
    places = filter(os.path.isdir, SYSTEM)
    found["names"] += subprocess.run(["find", *places, *names], capture_output=True, text=True).stdout.splitlines()
for pid in filter(str.isdigit, os.listdir("/proc")):
    line = read(f"/proc/{pid}/cmdline").replace(b"\\0", b" ")
    found["processes"][pid] = line[:60].decode("utf-8", "replace")
    texts = [line, *(read(f"/proc/{pid}/{name}") for name in ("environ", "maps", "status", "stack", "mountinfo"))]
    for name in ("cwd", "root", "exe"):
        try: texts.append(os.readlink(f"/proc/{pid}/{name}").encode())
        except OSError: pass
    try: texts += [os.readlink(f"/proc/{pid}/fd/{fd}").encode() for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError: pass
    look(f"/proc/{pid}", b" ".join(texts))
found["mounts"] = [line.split()[3] for line in read("/proc/self/mountinfo").decode().splitlines()]
print(json.dumps(found))
"""


def program(words: Sequence[str], *, everywhere: bool = False) -> str:
    """Source of the program that looks for files by their names, and for *words* in files, processes and mounts.

    ``everywhere`` looks for the names in the system's folders too.
    """
    backwards = repr([word[::-1] for word in words])
    source = _PROGRAM.replace("__WORDS__", backwards).replace("__PREFIX__", repr(sys.base_prefix))
    return source.replace("__EVERYWHERE__", str(everywhere))
