import json
import unittest
from datetime import datetime
from decimal import Decimal

from landings import intake
from landings.lots import BadMessage, Lot


def message(**changed):
    lots = [{"species": "HKE", "grade": 1, "kilos": "237.5"}, {"species": "COE", "grade": 2, "kilos": "80"}]
    return json.dumps({"terminal": "T0412", "at": "2026-05-20T03:40", "lots": lots} | changed)


class TabletTest(unittest.TestCase):
    def test_lots(self):
        declared = datetime(2026, 5, 20, 3, 40)
        self.assertEqual(
            intake.read(message()),
            [
                Lot("Santa Luzia", "HKE", 1, Decimal("237.5"), declared),
                Lot("Santa Luzia", "COE", 2, Decimal("80"), declared),
            ],
        )

    def test_unknown_terminal(self):
        with self.assertRaises(BadMessage):
            intake.read(message(terminal="T9999"))

    def test_bad_weight(self):
        with self.assertRaises(BadMessage):
            intake.read(message(lots=[{"species": "HKE", "grade": 1, "kilos": "0"}]))

    def test_unknown_kind(self):
        with self.assertRaises(BadMessage):
            intake.read("<xml/>")


if __name__ == "__main__":
    unittest.main()
