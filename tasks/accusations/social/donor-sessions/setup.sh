# The desk's repository with its history, then chat and feed as they stand on Friday 2 October 2026, 15:10.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name sessions
git config user.email sessions@fenmarkblood.example
printf '.chat/\n.feed/\n' > .gitignore

stamp "Oona Tarrant" o.tarrant@fenmarkblood.example 2026-09-11T16:00:00+01:00
git add .gitignore README.md docs bookings/CH-88.md bookings/WSM-17.md bookings/FSK-4.md
git commit -q -m "Desk pages; halls for Aldmoor, Wick St Mary and Kelsey"

stamp "Oona Tarrant" o.tarrant@fenmarkblood.example 2026-09-18T10:35:00+01:00
git add bookings/THB-5531.md sessions
git commit -q -m "October: Corn Hall firm, list complete" \
    -m "THB-5531: Caddick turned the option into a booking this morning, great room and side entrance, read out and
repeated back."

chat init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-09-01T08:00", "seed": "fenmark-chat", "user": "sessions"}
{"op": "channel", "at": "2026-09-01T08:00", "channel": "vans", "topic": "Loads and arrivals. The list is pinned"}
{"op": "channel", "at": "2026-09-01T08:00", "channel": "phone-line", "topic": "The script is pinned"}
{"op": "channel", "at": "2026-09-01T08:00", "channel": "volunteers", "topic": "Tea, chairs, company"}
{"op": "post", "at": "2026-09-04T10:12", "by": "sessions", "channel": "vans", "id": "MA10F3", "text": "September\nKelsey, fire station: Tuesday 15 September, arrival 11:00\nThornby, Corn Hall: Thursday 10 September, arrival 12:00"}
{"op": "pin", "at": "2026-09-04T10:13", "by": "sessions", "id": "MA10F3"}
{"op": "post", "at": "2026-09-04T10:20", "by": "sessions", "channel": "phone-line", "id": "MB27C9", "text": "September\nThornby, Corn Hall: Thursday 10 September, 14:00 to 20:00\nKelsey, fire station: Tuesday 15 September, 13:00 to 18:00"}
{"op": "pin", "at": "2026-09-04T10:21", "by": "sessions", "id": "MB27C9"}
{"op": "post", "at": "2026-09-15T19:02", "by": "depot.kelsey", "channel": "vans", "text": "Kelsey done, 87. Both vans back."}
{"op": "unpin", "at": "2026-09-16T08:31", "by": "sessions", "id": "MA10F3"}
{"op": "unpin", "at": "2026-09-16T08:32", "by": "sessions", "id": "MB27C9"}
{"op": "post", "at": "2026-09-29T17:44", "by": "h.quill", "channel": "volunteers", "text": "Thornby: who can do chairs on the 8th? I have eleven names, twelve would be lovely."}
{"op": "post", "at": "2026-10-01T09:15", "by": "o.tarrant", "channel": "volunteers", "text": "Aldmoor needs two more for tea on Tuesday."}
LOG

feed init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-09-01T08:00", "seed": "fenmark-feed", "user": "sessions"}
{"op": "publish", "at": "2026-09-04T10:05", "by": "sessions", "title": "Thornby, Thursday 10 September", "tags": ["session"], "id": "F1C77A", "text": "When: Thursday 10 September, 14:00 to 20:00\nWhere: Corn Hall, Thornby\nPlease bring your card or something with your name and a photograph."}
{"op": "publish", "at": "2026-09-04T10:08", "by": "sessions", "title": "Kelsey, Tuesday 15 September", "tags": ["session"], "id": "F2E02B", "text": "When: Tuesday 15 September, 13:00 to 18:00\nWhere: Fire station, Kelsey\nBay 2, the big door is open."}
{"op": "publish", "at": "2026-09-17T12:00", "by": "sessions", "title": "Thank you, September", "tags": [], "id": "F3B951", "text": "178 of you came to Thornby and Kelsey. October's sessions will be here at the beginning of the month."}
{"op": "reply", "at": "2026-09-24T20:14", "by": "petra_thornby", "to": "F3B951", "id": "F4D6E8", "text": "Does Thornby get one in October too? I missed September and can only come after six."}
{"op": "reply", "at": "2026-09-25T07:50", "by": "kelsey_rob", "to": "F3B951", "text": "First time for me. Did not hurt at all."}
{"op": "publish", "at": "2026-10-02T15:10", "by": "sessions", "title": "Telephone line this weekend", "tags": [], "text": "Saturday 9:00 to 13:00, Sunday closed."}
LOG
