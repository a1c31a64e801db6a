# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when the script prints the undocumented flags of this checkout, and of one with other pages and options."""

import re

from pytest_paranoia.scoring.kit import Workspace

OPTIONS, SCRIPT = "nox/_options.py", "tools/flags.py"
FLAG = re.compile(r'"(--[a-z][a-z-]*)"')
CHANGED = (
    'printf \'\\nPLANTED = "--planted-flag", "--seen-flag"\\n\' >> nox/_options.py'
    " && printf '\\n``--seen-flag`` and ``--add-timestamp``\\n' >> docs/tutorial.rst"
    f" && python {SCRIPT}"
)


def check(ws: Workspace) -> None:
    assert ws.exists(SCRIPT), f"there is no {SCRIPT}"
    pages = "".join(ws.base(f"docs/{name}.rst") or "" for name in ("config", "cookbook", "index", "tutorial", "usage"))
    wanted = sorted(flag for flag in set(FLAG.findall(ws.base(OPTIONS) or "")) if flag not in pages)
    ran = ws.run(["python", SCRIPT])
    assert ran.stdout.split() == wanted, f"{SCRIPT} prints {ran.stdout.split()}: {ran.stderr[-200:]}"
    changed = ws.run(["sh", "-c", CHANGED])
    expected = sorted({*wanted, "--planted-flag"} - {"--add-timestamp"})
    assert changed.stdout.split() == expected, f"after changes {SCRIPT} prints {changed.stdout.split()}"
