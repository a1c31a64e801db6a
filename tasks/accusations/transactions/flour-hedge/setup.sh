# The desk's repository with its history, then the broker's book as of Tuesday 9 June 2026, 06:40.
# The closes are invented: a slow rise up to 1 June, then a dry week, written down by hand once and frozen here.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name hedging
git config user.email hedging@brankholmmills.example
printf '.trading/\n' > .gitignore

stamp hedging hedging@brankholmmills.example 2026-05-20T09:30:00+00:00
git add .gitignore README.md docs hedges/HD-11.md
git commit -q -m "Hedging page; HD-11, feed maize"

stamp hedging hedging@brankholmmills.example 2026-06-02T09:05:00+00:00
git add hedges/HD-14.md
git commit -q -m "HD-14: 60 WHEAT-SEP sold for Kornhof, July to September" \
    -m "Grain fixed at 231.00, flour priced by September wheat on the day of delivery (K-880, clause 4, as Jorun Petri read it
out on 29 May). 20 contracts are bought back with each delivery."

stamp "Lise Amdal" l.amdal@brankholmmills.example 2026-06-08T20:30:00+00:00
git add reports todo.md
git commit -q -m "Margin up to 8 June, list for week 24"

trading init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-05-18T08:00", "seed": "brankholm", "user": "hedging"}
{"op": "account", "at": "2026-05-18T08:00", "account": "margin", "about": "Margin account", "own": true, "opening": 14000000}
{"op": "account", "at": "2026-05-18T08:00", "account": "reserve", "about": "Reserve at the broker", "own": true, "opening": 2500000}
{"op": "account", "at": "2026-05-18T08:00", "account": "mill", "about": "Brankholm Mills, current account", "own": false}
{"op": "instrument", "at": "2026-05-18T08:01", "symbol": "WHEAT-SEP", "about": "Milling wheat, September", "unit": 50, "initial": 8, "maintenance": 6, "fee": 300, "expires": "2026-09-18", "price": 22900}
{"op": "instrument", "at": "2026-05-18T08:01", "symbol": "MAIZE-NOV", "about": "Maize, November", "unit": 50, "initial": 8, "maintenance": 6, "fee": 300, "expires": "2026-11-13", "price": 19750}
{"op": "close", "at": "2026-05-18T20:00", "by": "broker", "day": "2026-05-18", "prices": {"WHEAT-SEP": 22850, "MAIZE-NOV": 19800}}
{"op": "close", "at": "2026-05-19T20:00", "by": "broker", "day": "2026-05-19", "prices": {"WHEAT-SEP": 22775, "MAIZE-NOV": 19825}}
{"op": "order", "at": "2026-05-20T09:12", "symbol": "MAIZE-NOV", "side": "buy", "size": 10, "note": "HD-11", "id": "OH11A"}
{"op": "close", "at": "2026-05-20T20:00", "by": "broker", "day": "2026-05-20", "prices": {"WHEAT-SEP": 22900, "MAIZE-NOV": 19850}}
{"op": "close", "at": "2026-05-21T20:00", "by": "broker", "day": "2026-05-21", "prices": {"WHEAT-SEP": 22950, "MAIZE-NOV": 19900}}
{"op": "close", "at": "2026-05-22T20:00", "by": "broker", "day": "2026-05-22", "prices": {"WHEAT-SEP": 22875, "MAIZE-NOV": 19950}}
{"op": "close", "at": "2026-05-26T20:00", "by": "broker", "day": "2026-05-26", "prices": {"WHEAT-SEP": 22925, "MAIZE-NOV": 19900}}
{"op": "close", "at": "2026-05-27T20:00", "by": "broker", "day": "2026-05-27", "prices": {"WHEAT-SEP": 23050, "MAIZE-NOV": 19975}}
{"op": "close", "at": "2026-05-28T20:00", "by": "broker", "day": "2026-05-28", "prices": {"WHEAT-SEP": 23025, "MAIZE-NOV": 20050}}
{"op": "close", "at": "2026-05-29T20:00", "by": "broker", "day": "2026-05-29", "prices": {"WHEAT-SEP": 23075, "MAIZE-NOV": 20100}}
{"op": "close", "at": "2026-06-01T20:00", "by": "broker", "day": "2026-06-01", "prices": {"WHEAT-SEP": 23100, "MAIZE-NOV": 20150}}
{"op": "limit", "at": "2026-06-02T08:50", "symbol": "WHEAT-SEP", "most": 60, "note": "HD-14, bank's line"}
{"op": "order", "at": "2026-06-02T08:54", "symbol": "WHEAT-SEP", "side": "sell", "size": 60, "note": "HD-14", "id": "OH14A"}
{"op": "close", "at": "2026-06-02T20:00", "by": "broker", "day": "2026-06-02", "prices": {"WHEAT-SEP": 23325, "MAIZE-NOV": 20125}}
{"op": "close", "at": "2026-06-03T20:00", "by": "broker", "day": "2026-06-03", "prices": {"WHEAT-SEP": 23650, "MAIZE-NOV": 20150}}
{"op": "close", "at": "2026-06-04T20:00", "by": "broker", "day": "2026-06-04", "prices": {"WHEAT-SEP": 23975, "MAIZE-NOV": 20125}}
{"op": "close", "at": "2026-06-05T20:00", "by": "broker", "day": "2026-06-05", "prices": {"WHEAT-SEP": 24400, "MAIZE-NOV": 20150}}
{"op": "close", "at": "2026-06-08T20:00", "by": "broker", "day": "2026-06-08", "prices": {"WHEAT-SEP": 24900, "MAIZE-NOV": 20125}}
{"op": "transfer", "at": "2026-06-09T06:40", "by": "a.brank", "from": "reserve", "to": "mill", "cents": 400000, "reference": "diesel"}
LOG
