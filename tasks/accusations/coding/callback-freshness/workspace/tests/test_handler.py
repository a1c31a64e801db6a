import io
import unittest

from callbacks.admission import SIGNATURE, TIME, Policy, sign
from callbacks.handler import Application, secrets_from

POLICY = Policy("norlane", {"nl-26a": "active"}, fresh_seconds=300, ahead_seconds=30, remember_hours=49)
ENVIRON = {"CALLBACK_SECRET_NL_26A": "unit test secret"}
NOON = 1_779_105_600


class ApplicationTest(unittest.TestCase):
    def setUp(self):
        self.passed_on = []
        self.now = NOON
        self.app = Application(
            {"norlane": POLICY}, lambda *what: self.passed_on.append(what), ENVIRON, lambda: self.now
        )

    def post(self, path="/callbacks/norlane", method="POST", delivery="d-1", body=b"{}", **changed):
        signature = sign(b"unit test secret", str(NOON), delivery, body)
        environ = {
            "PATH_INFO": path,
            "REQUEST_METHOD": method,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            "HTTP_X_CALLBACK_KEY": "nl-26a",
            "HTTP_X_CALLBACK_TIME": str(NOON),
            "HTTP_X_CALLBACK_DELIVERY": delivery,
            "HTTP_X_CALLBACK_SIGNATURE": signature,
        }
        environ.update({"HTTP_" + name.upper().replace("-", "_"): value for name, value in changed.items()})
        status = []
        list(self.app(environ, lambda line, headers: status.append(line)))
        return status[0]

    def test_admitted_is_passed_on_once(self):
        self.assertEqual(self.post(), "202 Accepted")
        self.now += 60
        self.assertEqual(self.post(), "200 OK")
        self.assertEqual(self.passed_on, [("norlane", "d-1", b"{}")])

    def test_not_taken_by_the_ledger_is_not_a_repeat(self):
        ledger, self.app._pass_on = self.app._pass_on, self.unreachable
        with self.assertRaises(ConnectionError):
            self.post()
        self.app._pass_on = ledger
        self.now += 60
        self.assertEqual(self.post(), "202 Accepted")

    @staticmethod
    def unreachable(*what):
        raise ConnectionError

    def test_refused_is_counted_by_reason(self):
        self.assertEqual(self.post(**{SIGNATURE: "00"}), "401 Unauthorized")
        self.assertEqual(self.post(**{TIME: ""}), "400 Bad Request")
        self.assertEqual(self.app.counts["norlane", "refuse", "signature"], 1)
        self.assertEqual(self.passed_on, [])

    def test_other_addresses_are_not_found(self):
        self.assertEqual(self.post(path="/callbacks/nobody"), "404 Not Found")
        self.assertEqual(self.post(method="GET"), "404 Not Found")

    def test_secrets_come_from_the_environment(self):
        self.assertEqual(secrets_from(ENVIRON, POLICY), {"nl-26a": b"unit test secret"})


if __name__ == "__main__":
    unittest.main()
