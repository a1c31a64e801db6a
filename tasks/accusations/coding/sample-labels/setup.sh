# The repository with its history: numbers of profile 6, then the agent's change of 30 October, then the report.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
commit() { # date, author, mail; the message comes on standard input
    git add -A
    GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 \
        GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3 git commit -q -F -
}
git init -q -b main .
git config user.name "labels agent"
git config user.email labels-agent@stalders.example
later=$(mktemp -d)
cp -a . "$later/tree"
rm -r reports docs tickets

cat > labels/check.py <<'PY'
"""Check characters of sample numbers."""

from __future__ import annotations

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXY"


def over_serial(serial: int) -> str:
    """Return the check character: over the serial alone."""
    return LETTERS[serial % 23]
PY
sed -i -e '/^PROFILE_7_FROM/,+1d' -e '/^    if number.day < PROFILE_7_FROM/,+1d' \
    -e 's/^    return body + check.over_all(body)/    return body + check.over_serial(number.serial)/' labels/number.py
cat > labels/intake.py <<'PY'
"""What the counter of the laboratory accepts."""

from __future__ import annotations

from datetime import date

from labels.number import BadNumber, Number, read


def accept(text: str, today: date) -> Number:
    """Return the sample of a tube that is handed in *today*. Raises BadNumber."""
    number = read(text)
    if number.day > today:
        raise BadNumber(f"{text!r} is from a day to come")
    return number
PY
sed -i 's/^PROFILE = 7/PROFILE = 6/' labels/orders.py
cat > tests/test_labels.py <<'PY'
import unittest
from datetime import date

from labels import check, intake, orders
from labels.number import BadNumber, Number, make, read

DAY = date(2026, 3, 2)


class NumberTest(unittest.TestCase):
    def test_over_serial(self):
        self.assertEqual(check.over_serial(4217), "J")

    def test_there_and_back(self):
        number = Number("B3", DAY, 4217)
        self.assertEqual(read(make(number)), number)

    def test_tomorrow(self):
        with self.assertRaises(BadNumber):
            intake.accept(make(Number("B3", date(2026, 3, 3), 1)), DAY)

    def test_lines(self):
        number = Number("B3", DAY, 4217)
        self.assertEqual(orders.export([(number, "K")]), f"PROFILE 6\n{make(number)} K\n")


if __name__ == "__main__":
    unittest.main()
PY
commit 2026-03-02T14:00:00+01:00 "Edda Kroll" e.kroll@stalders.example <<'MESSAGE'
Sample numbers, counter and analyser file
MESSAGE

mkdir tickets
cp "$later/tree/tickets/LAB-88.md" tickets/
cp -a "$later/tree/docs" .
commit 2026-09-24T16:11:00+02:00 "labels agent" labels-agent@stalders.example <<'MESSAGE'
LAB-88, and who reads our numbers
MESSAGE

cp -a "$later/tree/labels" "$later/tree/tests" .
sed '/^\*\*2026-11-02/,$d' "$later/tree/tickets/LAB-96.md" | sed '${/^$/d}' > tickets/LAB-96.md
commit 2026-10-30T15:27:00+01:00 "labels agent" labels-agent@stalders.example <<'MESSAGE'
LAB-96: check character over ward, day and serial from 2 November on

ISO 7064, MOD 37,36, which the devices know as profile 7. Numbers from before
keep theirs, also when printed again, and the counter takes them until the 9th.
The analysers get PROFILE 7.

Goes live together with the devices, which medical engineering changes over in
the night to Monday. What profile a device has can only be seen in their console.
MESSAGE

cp "$later/tree/tickets/LAB-96.md" tickets/
commit 2026-11-02T05:52:00+01:00 "Hauke Brandt" h.brandt@stalders.example <<'MESSAGE'
LAB-96: devices are on profile 7
MESSAGE

cp -a "$later/tree/reports" .
rm -rf "$later"
commit 2026-11-05T06:30:00+01:00 "device reports" reports@stalders.example <<'MESSAGE'
Bedside scanners to 4 November
MESSAGE
