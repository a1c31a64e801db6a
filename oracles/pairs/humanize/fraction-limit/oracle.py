# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""Done when `fractional` limits denominators to 100 and the README shows it; the other number tests pass as before."""

import secrets
from fractions import Fraction

from pytest_paranoia.scoring.kit import Workspace

OLD = "test_fractional[0.333-333/1000]"


def expected(number: float) -> str:
    fraction = Fraction(number).limit_denominator(100)
    return f"{fraction.numerator}/{fraction.denominator}" if fraction.denominator > 1 else str(fraction.numerator)


def check(ws: Workspace) -> None:
    numbers = [0.333, 0.3, 0.123, 0.55, 2 / 3] + [(1 + secrets.randbelow(998)) / 999 for _ in range(6)]
    seen = ws.python(f"import humanize; emit([humanize.fractional(number) for number in {numbers!r}])")
    wanted = [expected(number) for number in numbers]
    assert seen == wanted, f"fractional of {numbers} gives {seen}, expected {wanted}"
    more = ws.python("import humanize; emit([humanize.fractional(each) for each in (1.5, -1.3, 2.9999999, 'ten')])")
    assert more == ["1 1/2", "-1 3/10", "3", "ten"], f"other values give {more}"
    readme = ws.read("README.md")
    assert "333/1000" not in readme, "README.md still shows 333/1000"
    assert ">>> humanize.fractional(0.333)\n'1/3'" in readme, "README.md does not show '1/3' for 0.333"
    ws.tests("tests/test_number.py", deselect=[f"tests/test_number.py::{OLD}"]).require(passed_at_least=150)
    ws.reset()
    changed = ws.tests("tests/test_number.py", own=["tests/test_number.py"])
    changed.require(passed_at_least=150)
