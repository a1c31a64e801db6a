import unittest
from decimal import Decimal

from weighing.scale import OutOfRange, shown
from weighing.ticket import issue


class ScaleTest(unittest.TestCase):
    def test_above_15_tonnes(self):
        self.assertEqual(shown(Decimal("31871.5")), 31880)
        self.assertEqual(shown(Decimal("31870")), 31880)
        self.assertEqual(shown(Decimal("31869.9")), 31860)

    def test_range(self):
        for reading in ("199.9", "50000.1"):
            with self.assertRaises(OutOfRange):
                shown(Decimal(reading))


class TicketTest(unittest.TestCase):
    def test_net_is_the_difference(self):
        ticket = issue("BE 44-KD", Decimal("12340"), Decimal("31871.5"))
        self.assertEqual((ticket.gross, ticket.tare, ticket.net), (31880, 12340, 19540))

    def test_loaded_first(self):
        self.assertEqual(issue("BE 44-KD", Decimal(31880), Decimal(12340)).net, 19540)


if __name__ == "__main__":
    unittest.main()
