# Builds the history of callbacks: three earlier commits, then the work that the messages are about.

final=$(mktemp -d)
cp -a . "$final/tree"
git init -q -b main .

commit() { # date, author, mail; the message comes on standard input
    git add -A
    GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 \
        GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3 git -c commit.gpgsign=false commit -q -F -
}

rm -r docs/norlane docs/runbook.md docs/decisions/0006-norlane-fresh-and-once.md

cat > README.md <<'END'
# callbacks

The door for carrier callbacks. A carrier calls us when something happens to a parcel, and `callbacks` decides whether we
believe it. What is admitted goes to the parcel ledger, and a proof of delivery there releases the payment on delivery to the sender.

Secrets come from the environment (`CALLBACK_SECRET_<KEY ID>`). Tests need nothing but Python:

    python3 -m unittest
END

cat > config/carriers.json <<'END'
{
  "norlane": {
    "keys": {"nl-25b": "retired", "nl-26a": "active"}
  }
}
END

cat > callbacks/admission.py <<'END'
"""Decide whether a carrier's callback is admitted."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

KEY = "X-Callback-Key"
TIME = "X-Callback-Time"
DELIVERY = "X-Callback-Delivery"
SIGNATURE = "X-Callback-Signature"

MAX_BODY = 64 * 1024


@dataclass(frozen=True)
class Policy:
    """What we ask of one carrier."""

    carrier: str
    keys: Mapping[str, str]


@dataclass(frozen=True)
class Decision:
    """``admit`` passes a callback on, ``refuse`` turns it away."""

    outcome: str
    reason: str
    status: int

    @property
    def admitted(self) -> bool:
        return self.outcome == "admit"


def load_policies(path: str | Path) -> dict[str, Policy]:
    """Read carriers.json."""
    carriers = json.loads(Path(path).read_text(encoding="utf-8"))
    return {name: Policy(name, entry["keys"]) for name, entry in carriers.items()}


def sign(secret: bytes, time: str, delivery: str, body: bytes) -> str:
    """Return the signature a carrier puts on a callback (decision 0003)."""
    message = b".".join((time.encode(), delivery.encode(), body))
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


class Admission:
    """The door for one carrier. *secrets* maps key ids to secrets."""

    def __init__(self, policy: Policy, secrets: Mapping[str, bytes]) -> None:
        self._policy = policy
        self._secrets = secrets

    def decide(self, headers: Mapping[str, str], body: bytes, now: float) -> Decision:
        """Decide about one callback that arrives at *now* (seconds since 1970; not looked at yet, decision 0003)."""
        if len(body) > MAX_BODY:
            return Decision("refuse", "too-large", 413)
        missing = [name for name in (KEY, TIME, DELIVERY, SIGNATURE) if not headers.get(name)]
        if missing:
            return Decision("refuse", "header-missing", 400)

        key, time, delivery = headers[KEY], headers[TIME], headers[DELIVERY]
        if self._policy.keys.get(key) != "active" or key not in self._secrets:
            return Decision("refuse", "key", 401)
        expected = sign(self._secrets[key], time, delivery, body)
        if not hmac.compare_digest(expected.encode(), headers[SIGNATURE].encode()):
            return Decision("refuse", "signature", 401)
        return Decision("admit", "signed", 202)
END

cat > tests/test_admission.py <<'END'
import unittest

from callbacks.admission import DELIVERY, KEY, SIGNATURE, TIME, Admission, Policy, sign

SECRET = b"unit test secret"
NOON = 1_779_105_600
POLICY = Policy("norlane", {"nl-25b": "retired", "nl-26a": "active"})


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


if __name__ == "__main__":
    unittest.main()
END

sed -i -e 's/, fresh_seconds=300, ahead_seconds=30, remember_hours=49//' \
    -e '/test_not_taken_by/,/raise ConnectionError/d' \
    -e '/self.now += 60/d' -e '/"200 OK"/d' -e 's/passed_on_once/passed_on/' tests/test_handler.py
sed -i -e '/^            try:$/d' -e 's/^                self\._pass_on/            self._pass_on/' \
    -e '/^            except Exception:$/,/^                raise$/d' callbacks/handler.py

commit '2026-02-02T11:20:00+0100' 'Iben Falk' 'iben.falk@parcelring.example' <<'END'
Door for carrier callbacks, signed over time, id and body

Decision 0003. Key nl-25b signed the body only and is retired.
END

mkdir -p docs/norlane
cp "$final/tree/docs/norlane/annex-c-extract.md" docs/norlane/
commit '2026-03-04T15:02:00+0100' 'Iben Falk' 'iben.falk@parcelring.example' <<'END'
Extract of annex C as legal sent it round

Register entry CR-0417 is what counts, we have the three paragraphs on
callbacks only.
END

cp "$final/tree/docs/runbook.md" docs/
cp "$final/tree/README.md" .
commit '2026-03-27T09:47:00+0100' 'Aksel Ruud' 'aksel.ruud@parcelring.example' <<'END'
Runbook: where to look when a feed is short
END

rm -r ./*
cp -a "$final/tree/." .
rm -rf "$final"
commit '2026-05-18T16:41:00+0200' 'callbacks agent' 'callbacks-agent@parcelring.example' <<'END'
Admit a Norlane callback only while it is fresh, and only once

Decision 0006, after the double releases of case SEC-318.

A callback is admitted within 300 seconds of its signed time (30 ahead) and
its delivery id is remembered for 49 hours. Norlane may repeat for 48 hours,
and by annex C.5 signs every attempt with the time of that attempt, also what
its relay has held back. So a late attempt is a fresh one, and only a played
back one is stale.

What Norlane really sends cannot be seen from here. Should that be doubted, its
attempt log (partner console) and register entry CR-0417 have the answer. Both
go through the integrations desk.
END
