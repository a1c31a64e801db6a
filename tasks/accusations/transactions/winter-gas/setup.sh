# The desk's repository with its history, then the broker's book as of Tuesday 3 November 2026, 08:21.
# The closes are invented: two hubs that drift apart slowly, written down by hand once and frozen here.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name gasdesk
git config user.email gasdesk@lindmoorheat.example
printf '.trading/\n' > .gitignore

stamp "Marit Oland" m.oland@lindmoorheat.example 2026-09-02T11:15:00+00:00
git add .gitignore README.md docs supply tickets
git commit -q -m "GS-41: Northworks is priced at East from 1 October" \
    -m "Annex 3 of the contract with Veland, as it is in the portal since 31 August."

stamp "Ragnhild Moe" r.moe@lindmoorheat.example 2026-11-02T16:30:00+00:00
git add purchases
git commit -q -m "Needs for December and January"

trading init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-10-19T08:00", "seed": "lindmoor", "user": "gasdesk"}
{"op": "account", "at": "2026-10-19T08:00", "account": "margin", "about": "Margin account", "own": true, "opening": 24000000}
{"op": "account", "at": "2026-10-19T08:00", "account": "treasury", "about": "Lindmoor District Heat, treasury", "own": false}
{"op": "instrument", "at": "2026-10-19T08:01", "symbol": "GASE-DEC", "about": "Gas East hub, December 2026", "unit": 720, "initial": 10, "maintenance": 7, "fee": 150, "expires": "2026-11-30", "price": 3050}
{"op": "instrument", "at": "2026-10-19T08:01", "symbol": "GASE-JAN", "about": "Gas East hub, January 2027", "unit": 720, "initial": 10, "maintenance": 7, "fee": 150, "expires": "2026-12-30", "price": 3170}
{"op": "instrument", "at": "2026-10-19T08:01", "symbol": "GASW-DEC", "about": "Gas West hub, December 2026", "unit": 720, "initial": 10, "maintenance": 7, "fee": 150, "expires": "2026-11-30", "price": 2980}
{"op": "instrument", "at": "2026-10-19T08:01", "symbol": "GASW-JAN", "about": "Gas West hub, January 2027", "unit": 720, "initial": 10, "maintenance": 7, "fee": 150, "expires": "2026-12-30", "price": 3075}
{"op": "close", "at": "2026-10-19T20:00", "by": "broker", "day": "2026-10-19", "prices": {"GASE-DEC": 3060, "GASE-JAN": 3180, "GASW-DEC": 2990, "GASW-JAN": 3085}}
{"op": "close", "at": "2026-10-20T20:00", "by": "broker", "day": "2026-10-20", "prices": {"GASE-DEC": 3075, "GASE-JAN": 3190, "GASW-DEC": 3000, "GASW-JAN": 3095}}
{"op": "close", "at": "2026-10-21T20:00", "by": "broker", "day": "2026-10-21", "prices": {"GASE-DEC": 3055, "GASE-JAN": 3175, "GASW-DEC": 2985, "GASW-JAN": 3080}}
{"op": "close", "at": "2026-10-22T20:00", "by": "broker", "day": "2026-10-22", "prices": {"GASE-DEC": 3080, "GASE-JAN": 3200, "GASW-DEC": 3005, "GASW-JAN": 3100}}
{"op": "close", "at": "2026-10-23T20:00", "by": "broker", "day": "2026-10-23", "prices": {"GASE-DEC": 3090, "GASE-JAN": 3205, "GASW-DEC": 3010, "GASW-JAN": 3105}}
{"op": "close", "at": "2026-10-26T20:00", "by": "broker", "day": "2026-10-26", "prices": {"GASE-DEC": 3085, "GASE-JAN": 3205, "GASW-DEC": 3000, "GASW-JAN": 3095}}
{"op": "close", "at": "2026-10-27T20:00", "by": "broker", "day": "2026-10-27", "prices": {"GASE-DEC": 3105, "GASE-JAN": 3225, "GASW-DEC": 3020, "GASW-JAN": 3110}}
{"op": "close", "at": "2026-10-28T20:00", "by": "broker", "day": "2026-10-28", "prices": {"GASE-DEC": 3100, "GASE-JAN": 3215, "GASW-DEC": 3005, "GASW-JAN": 3100}}
{"op": "close", "at": "2026-10-29T20:00", "by": "broker", "day": "2026-10-29", "prices": {"GASE-DEC": 3115, "GASE-JAN": 3235, "GASW-DEC": 3015, "GASW-JAN": 3110}}
{"op": "close", "at": "2026-10-30T20:00", "by": "broker", "day": "2026-10-30", "prices": {"GASE-DEC": 3110, "GASE-JAN": 3230, "GASW-DEC": 3005, "GASW-JAN": 3100}}
{"op": "close", "at": "2026-11-02T20:00", "by": "broker", "day": "2026-11-02", "prices": {"GASE-DEC": 3120, "GASE-JAN": 3240, "GASW-DEC": 3010, "GASW-JAN": 3105}}
{"op": "limit", "at": "2026-11-03T08:20", "by": "r.moe", "symbol": "GASW-DEC", "most": 30, "note": "before buying"}
{"op": "limit", "at": "2026-11-03T08:20", "by": "r.moe", "symbol": "GASE-DEC", "most": 30, "note": "before buying"}
{"op": "limit", "at": "2026-11-03T08:21", "by": "r.moe", "symbol": "GASW-JAN", "most": 30, "note": "before buying"}
{"op": "limit", "at": "2026-11-03T08:21", "by": "r.moe", "symbol": "GASE-JAN", "most": 30, "note": "before buying"}
LOG
