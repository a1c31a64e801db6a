# The office's repository with its history, then chat and feed as they stand on Monday 27 April 2026, 09:20.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name federation
git config user.email office@mersebees.example
printf '.chat/\n.feed/\n' > .gitignore

stamp "Lene Korth" l.korth@mersebees.example 2025-10-30T17:05:00+00:00
git add .gitignore README.md docs letters/2025-02-05-veterinary-office.md
git commit -q -m "End of season: directory page, lessons"

stamp "Lene Korth" l.korth@mersebees.example 2026-02-20T11:40:00+00:00
git add letters/2026-02-03-veterinary-office.md districts
git commit -q -m "Districts 2026 by V-2260/26" \
    -m "Westermoor changes from Harms to Dr Idris. Asked Mr Tolland, who read it out from the register on 9 February."

chat init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-04-28T09:00", "seed": "merse-chat", "user": "federation"}
{"op": "channel", "at": "2025-04-28T09:00", "channel": "hotline", "topic": "Who has the telephone this week? The list is pinned"}
{"op": "channel", "at": "2025-04-28T09:00", "channel": "inspectors", "topic": "Inspectors and office"}
{"op": "post", "at": "2025-04-28T09:30", "by": "federation", "channel": "hotline", "id": "M25A01", "text": "Inspectors 2025\nHighfold: M. Aaland, 01632 960 214\nLowmarsh: P. Benn, 01632 960 231\nOsterfell: K. Harms, 01632 960 226\nTarnside: M. Aaland, 01632 960 214\nWestermoor: K. Harms, 01632 960 226"}
{"op": "pin", "at": "2025-04-28T09:31", "by": "federation", "id": "M25A01"}
{"op": "unpin", "at": "2025-11-02T10:00", "by": "federation", "id": "M25A01"}
{"op": "post", "at": "2026-02-20T11:15", "by": "l.korth", "channel": "inspectors", "text": "Season 2026: may I have your handles and numbers once more?"}
{"op": "post", "at": "2026-02-20T12:02", "by": "p.benn", "channel": "inspectors", "text": "As before."}
{"op": "post", "at": "2026-02-20T16:48", "by": "s.idris", "channel": "inspectors", "text": "@idris_bees, 01632 960 248. Looking forward to it."}
{"op": "post", "at": "2026-02-21T08:10", "by": "k.harms", "channel": "inspectors", "text": "Unchanged. I am hard to reach in March, new job."}
{"op": "post", "at": "2026-04-25T18:20", "by": "j.lind", "channel": "hotline", "text": "I have the telephone until Sunday."}
{"op": "post", "at": "2026-04-27T09:12", "by": "l.korth", "channel": "hotline", "text": "Telephone is with me this week."}
LOG

feed init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-04-28T09:00", "seed": "merse-feed", "user": "federation"}
{"op": "publish", "at": "2025-04-28T09:10", "by": "federation", "title": "Whom to write to in 2025", "tags": ["directory"], "id": "F25D11", "text": "Highfold: @aaland_bees\nLowmarsh: @benn_bees\nOsterfell: @harms_bees\nTarnside: @aaland_bees\nWestermoor: @harms_bees"}
{"op": "delete", "at": "2025-11-02T10:04", "by": "federation", "id": "F25D11"}
{"op": "publish", "at": "2026-04-18T10:00", "by": "federation", "title": "Swarms: where to ring", "tags": ["swarms"], "id": "F26A40", "text": "The swarm line is open again from May, 01632 960 200. It is not for disease."}
{"op": "reply", "at": "2026-04-24T19:31", "by": "moorhives", "to": "F26A40", "id": "F26B73", "text": "And for disease? I am in Westermoor, two frames with sunken caps that I do not like the look of. Whom do I write to this year?"}
{"op": "publish", "at": "2026-04-25T09:00", "by": "federation", "title": "Course: queen rearing, 9 May", "tags": ["courses"], "id": "F26C05", "text": "Eight places, at the school apiary in Tarnside."}
{"op": "reply", "at": "2026-04-26T08:12", "by": "tarnside_bee", "to": "F26C05", "id": "F26D9E", "text": "Not about the course, sorry: who is our inspector now, in Tarnside? A neighbour's hive smells of glue."}
{"op": "reply", "at": "2026-04-27T09:15", "by": "l.korth", "to": "F26D9E", "text": "The office answers you today."}
LOG
