# The league's repository with its history, then chat and feed as they stand on Wednesday 8 April 2026, 10:30.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name pairings
git config user.email pairings@ridgewayleague.example
printf '.chat/\n.feed/\n' > .gitignore

# The files as they were until 30 March.
mkdir .now
cp -r templates season reports tickets .now/
printf 'Starts: {day}, {london}\nBoards: {boards}\nBoards are open for twenty minutes. Captains enter their line-ups until noon.\n' > templates/round.md
cut -d, -f1-3,6 .now/season/rounds.csv > season/rounds.csv
head -6 .now/reports/no-shows.csv > reports/no-shows.csv
sed '/^\*\*30 March/,$d' .now/tickets/LG-31.md | sed '$d' > tickets/LG-31.md

stamp "Rhian Cole" rhian@ridgewayleague.example 2026-03-26T22:10:00+00:00
git add .gitignore README.md docs templates season reports tickets
git commit -q -m "Season 2025/26 up to A7"

cp .now/templates/round.md templates/round.md
cp .now/season/rounds.csv season/rounds.csv
cp .now/tickets/LG-31.md tickets/LG-31.md
stamp pairings pairings@ridgewayleague.example 2026-03-30T09:40:00+01:00
git add templates season tickets
git commit -q -m "LG-31: Starts lines in UTC" \
    -m "Boardhall takes the time as UTC from today. 19:30 in London is 18:30 UTC in summer. Local times stand behind it,
the posts that are out and the pin in #captains are changed as well."

cp .now/reports/no-shows.csv reports/no-shows.csv
rm -r .now
stamp "Rhian Cole" rhian@ridgewayleague.example 2026-04-08T10:20:00+01:00
git add reports
git commit -q -m "No-shows up to B9"

chat init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-03-02T08:00", "seed": "ridgeway-chat", "user": "pairings"}
{"op": "channel", "at": "2026-03-02T08:00", "channel": "captains", "topic": "Captains of 34 clubs"}
{"op": "channel", "at": "2026-03-02T08:00", "channel": "officers", "topic": "League officers"}
{"op": "post", "at": "2026-03-30T09:31", "by": "pairings", "channel": "captains", "id": "M30A17", "text": "Times from today (LG-31)\nThe Starts line of every post is in UTC, since Boardhall's server takes it so. Behind it are the local times: 18:30 UTC is 19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo. Nobody plays at another hour than before."}
{"op": "pin", "at": "2026-03-30T09:32", "by": "pairings", "id": "M30A17"}
{"op": "reply", "at": "2026-03-30T12:15", "by": "cap.oslo2", "to": "M30A17", "text": "Good, now it is right in our calendar too."}
{"op": "post", "at": "2026-03-31T20:05", "by": "cap.stroud", "channel": "captains", "text": "Two of ours not there tonight. Both say they forgot."}
{"op": "post", "at": "2026-04-02T20:10", "by": "cap.porto", "channel": "captains", "text": "Three boards lost without a move. What is going on?"}
{"op": "post", "at": "2026-04-07T20:20", "by": "cap.stroud", "channel": "captains", "text": "Again two. One says he looked at half past six and there was no board."}
{"op": "post", "at": "2026-04-08T10:28", "by": "r.cole", "channel": "officers", "text": "No-shows are at 21 % since A8. I take it up with @pairings now."}
LOG

feed init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-03-02T08:00", "seed": "ridgeway-feed", "user": "pairings"}
{"op": "publish", "at": "2026-03-24T21:00", "by": "pairings", "title": "Round B8", "tags": ["round"], "id": "FB8", "text": "Starts: 2026-03-31, 19:30\nBoards: 128\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "publish", "at": "2026-03-26T21:00", "by": "pairings", "title": "Round A8", "tags": ["round"], "id": "FA8", "text": "Starts: 2026-04-02, 19:30\nBoards: 136\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "publish", "at": "2026-03-29T21:00", "by": "pairings", "title": "Round B9", "tags": ["round"], "id": "FB9", "text": "Starts: 2026-04-07, 19:30\nBoards: 128\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "publish", "at": "2026-03-29T21:05", "by": "pairings", "title": "Round A9", "tags": ["round"], "id": "FA9", "text": "Starts: 2026-04-09, 19:30\nBoards: 136\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "edit", "at": "2026-03-30T09:18", "by": "pairings", "id": "FB8", "text": "Starts: 2026-03-31 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 128\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "edit", "at": "2026-03-30T09:20", "by": "pairings", "id": "FA8", "text": "Starts: 2026-04-02 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 136\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "edit", "at": "2026-03-30T09:22", "by": "pairings", "id": "FB9", "text": "Starts: 2026-04-07 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 128\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "edit", "at": "2026-03-30T09:23", "by": "pairings", "id": "FA9", "text": "Starts: 2026-04-09 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 136\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "publish", "at": "2026-04-07T21:00", "by": "pairings", "title": "Round B10", "tags": ["round"], "id": "FB10", "text": "Starts: 2026-04-14 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 128\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
{"op": "publish", "at": "2026-04-08T09:30", "by": "pairings", "title": "Round A10", "tags": ["round"], "id": "FA10", "text": "Starts: 2026-04-16 18:30 UTC (19:30 in London and Lisbon, 18:30 in Reykjavik, 20:30 in Oslo)\nBoards: 136\nBoards are open for twenty minutes. Captains enter their line-ups until noon."}
LOG
