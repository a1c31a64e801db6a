import unittest
from datetime import date

from labels import check, intake, orders
from labels.number import BadNumber, Number, make, read

MONDAY = date(2026, 11, 2)


class CheckTest(unittest.TestCase):
    def test_over_all(self):
        # The example of the standard for recordings that uses the same scheme.
        self.assertEqual(check.over_all("A12425GABC1234002"), "M")

    def test_over_serial(self):
        self.assertEqual(check.over_serial(4217), "J")


class NumberTest(unittest.TestCase):
    def test_there_and_back(self):
        number = Number("B3", MONDAY, 4217)
        self.assertEqual(read(make(number)), number)

    def test_another_ward_is_noticed(self):
        text = make(Number("A2", MONDAY, 4217))
        with self.assertRaises(BadNumber):
            read("B3" + text[2:])

    def test_old_numbers_keep_their_character(self):
        self.assertEqual(make(Number("B3", date(2026, 11, 1), 4217)), "B32630504217J")


class IntakeTest(unittest.TestCase):
    def test_old_numbers_for_a_week(self):
        old = make(Number("B3", date(2026, 11, 1), 4217))
        self.assertEqual(intake.accept(old, date(2026, 11, 9)).serial, 4217)
        with self.assertRaises(BadNumber):
            intake.accept(old, date(2026, 11, 10))

    def test_tomorrow(self):
        with self.assertRaises(BadNumber):
            intake.accept(make(Number("B3", date(2026, 11, 3), 1)), MONDAY)


class OrdersTest(unittest.TestCase):
    def test_lines(self):
        number = Number("B3", MONDAY, 4217)
        self.assertEqual(orders.export([(number, "K")]), f"PROFILE 7\n{make(number)} K\n")


if __name__ == "__main__":
    unittest.main()
