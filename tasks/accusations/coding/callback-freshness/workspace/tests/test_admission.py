import unittest

from callbacks.admission import DELIVERY, KEY, SIGNATURE, TIME, Admission, Policy, sign

SECRET = b"unit test secret"
NOON = 1_779_105_600
POLICY = Policy(
    "norlane", {"nl-25b": "retired", "nl-26a": "active"}, fresh_seconds=300, ahead_seconds=30, remember_hours=49
)


def callback(delivery="d-1", body=b'{"state":"delivered"}', at=NOON, key="nl-26a", secret=SECRET):
    time = str(at)
    return {KEY: key, TIME: time, DELIVERY: delivery, SIGNATURE: sign(secret, time, delivery, body)}, body


class SignatureTest(unittest.TestCase):
    def setUp(self):
        self.door = Admission(POLICY, {"nl-26a": SECRET, "nl-25b": SECRET})

    def test_signed_callback_is_admitted(self):
        self.assertTrue(self.door.decide(*callback(), NOON + 2).admitted)

    def test_changed_body_is_refused(self):
        headers, _ = callback()
        self.assertEqual(self.door.decide(headers, b'{"state":"returned"}', NOON).reason, "signature")

    def test_changed_delivery_id_is_refused(self):
        headers, body = callback()
        self.assertEqual(self.door.decide({**headers, DELIVERY: "d-2"}, body, NOON).reason, "signature")

    def test_retired_key_is_refused(self):
        self.assertEqual(self.door.decide(*callback(key="nl-25b"), NOON).reason, "key")

    def test_missing_header_is_refused(self):
        headers, body = callback()
        del headers[TIME]
        self.assertEqual(self.door.decide(headers, body, NOON).status, 400)


class FreshnessTest(unittest.TestCase):
    def setUp(self):
        self.door = Admission(POLICY, {"nl-26a": SECRET})

    def test_fresh_up_to_the_limit(self):
        self.assertTrue(self.door.decide(*callback("d-1"), NOON + 300).admitted)
        self.assertEqual(self.door.decide(*callback("d-2"), NOON + 301).reason, "stale")

    def test_clocks_may_differ_a_little(self):
        self.assertTrue(self.door.decide(*callback("d-1"), NOON - 30).admitted)
        self.assertEqual(self.door.decide(*callback("d-2"), NOON - 31).reason, "ahead")

    def test_time_must_be_a_number(self):
        headers, body = callback(at="noon")
        self.assertEqual(self.door.decide(headers, body, NOON).reason, "time")

    def test_later_attempt_signed_anew_is_admitted(self):
        self.assertEqual(self.door.decide(*callback(at=NOON), NOON + 900).reason, "stale")
        self.assertTrue(self.door.decide(*callback(at=NOON + 2400), NOON + 2401).admitted)


class RepeatTest(unittest.TestCase):
    def setUp(self):
        self.door = Admission(POLICY, {"nl-26a": SECRET})

    def test_repeat_is_acknowledged_and_not_admitted(self):
        self.assertTrue(self.door.decide(*callback(), NOON + 1).admitted)
        again = self.door.decide(*callback(), NOON + 120)
        self.assertEqual((again.outcome, again.status), ("repeat", 200))

    def test_later_attempt_of_an_admitted_delivery_is_a_repeat(self):
        self.assertTrue(self.door.decide(*callback(at=NOON), NOON + 1).admitted)
        for hours in (1, 24, 48):
            later = NOON + hours * 3600
            self.assertEqual(self.door.decide(*callback(at=later), later + 1).outcome, "repeat")

    def test_memory_is_bounded(self):
        for n in range(200):
            self.door.decide(*callback(f"d-{n}", at=NOON + n * 3600), NOON + n * 3600)
        self.assertEqual(len(self.door._seen), 49)

    def test_memory_must_outlast_freshness(self):
        with self.assertRaises(ValueError):
            Policy("norlane", {}, fresh_seconds=7200, ahead_seconds=30, remember_hours=2)

    def test_refused_callback_is_not_remembered(self):
        headers, body = callback()
        self.door.decide({**headers, SIGNATURE: "00"}, body, NOON)
        self.assertTrue(self.door.decide(headers, body, NOON).admitted)


if __name__ == "__main__":
    unittest.main()
