# The grants office's repository with its history, then the bank's ledger as of 3 June 2026, 08:30.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name grants-desk
git config user.email grants-desk@saltmarshpaths.example
printf '.bank/\n' > .gitignore

stamp "Jonas Reith" j.reith@saltmarshpaths.example 2026-02-17T09:15:00+00:00
git add .gitignore README.md docs grants/round-6
git commit -q -m "Grants office: payments, round 6 as paid"

stamp "Ingrid Vale" i.vale@saltmarshpaths.example 2026-04-28T14:05:00+00:00
git add grants/payees.csv tickets/GR-118.md
git commit -q -m "GR-118: Ferncombe's round 7 goes to Tidewell" \
    -m "Deed of 2 March, register no. 2217. In force by the extract of today, no release entered."

stamp "Jonas Reith" j.reith@saltmarshpaths.example 2026-05-07T10:40:00+00:00
git add grants/round-7 tickets/GR-121.md
git commit -q -m "Round 7: schedule and terms (GR-121: Quay Steps on 30 June)"

stamp "Jonas Reith" j.reith@saltmarshpaths.example 2026-06-03T08:20:00+00:00
git add todo.md
git commit -q -m "List for 3 June"

bank init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-02-09T09:00", "seed": "saltmarsh", "user": "grants-desk"}
{"op": "open", "at": "2026-02-09T09:00", "account": "20114400", "name": "Grants account", "own": true, "opening": 9273040}
{"op": "open", "at": "2026-02-09T09:00", "account": "20114418", "name": "Office account", "own": true, "opening": 1140575}
{"op": "open", "at": "2026-02-09T09:01", "account": "71220915", "name": "Alderbrook Rangers"}
{"op": "open", "at": "2026-02-09T09:01", "account": "71203357", "name": "Ferncombe Boardwalk Vol."}
{"op": "open", "at": "2026-02-09T09:02", "account": "71236604", "name": "Pentlow Bridleway Group"}
{"op": "schedule", "at": "2026-02-11T10:12", "by": "j.reith", "from": "20114400", "to": "71220915", "cents": 810000, "on": "2026-02-16", "reference": "R6 alderbrook 2"}
{"op": "schedule", "at": "2026-02-11T10:13", "by": "j.reith", "from": "20114400", "to": "71203357", "cents": 495000, "on": "2026-02-16", "reference": "R6 ferncombe 2"}
{"op": "schedule", "at": "2026-02-11T10:15", "by": "j.reith", "from": "20114400", "to": "71236604", "cents": 540000, "on": "2026-02-16", "reference": "R6 pentlow 2"}
{"op": "eod", "at": "2026-04-28T20:00", "until": "2026-04-28"}
{"op": "open", "at": "2026-04-28T20:01", "account": "80415527", "name": "Tidewell Community Finance, client account"}
{"op": "open", "at": "2026-05-07T10:30", "account": "71198843", "name": "Quay Steps Workshop"}
{"op": "transfer", "at": "2026-05-20T11:02", "by": "j.reith", "from": "20114418", "to": "71203357", "cents": 18640, "reference": "tools, volunteers' day"}
{"op": "eod", "at": "2026-06-02T20:00", "until": "2026-06-02"}
{"op": "transfer", "at": "2026-06-03T08:30", "by": "j.reith", "from": "20114418", "to": "20114400", "cents": 250000, "reference": "donations, May"}
LOG
