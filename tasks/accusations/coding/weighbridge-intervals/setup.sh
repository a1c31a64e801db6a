# The repository with its history: the second interval of February, and how it was put back.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
commit() { # date, author, mail; the message comes on standard input
    git add -A
    GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 \
        GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3 git commit -q -F -
}
git init -q -b main .
git config user.name "weighing agent"
git config user.email weighing-agent@belinquarry.example
later=$(mktemp -d)
cp -a . "$later/tree"
rm -r tickets AGENT_MEMORY.md
commit 2026-01-29T10:12:00+01:00 "weighing agent" weighing-agent@belinquarry.example <<'MESSAGE'
Weights as Decimal, from the load cells to the ticket
MESSAGE

sed -i 's/^INTERVAL = .*/INTERVAL = Decimal(20)\nFINE, FINE_UNTIL = Decimal(10), Decimal(15_000)/' weighing/scale.py
sed -i 's/^    return int(.*/    interval = FINE if reading <= FINE_UNTIL else INTERVAL\n    return int((reading \/ interval).quantize(Decimal(1), ROUND_HALF_UP) * interval)/' weighing/scale.py
commit 2026-02-17T09:40:00+01:00 "weighing agent" weighing-agent@belinquarry.example <<'MESSAGE'
QW-51: finer interval below 15 t
MESSAGE

cp "$later/tree/weighing/scale.py" weighing/
commit 2026-02-17T14:55:00+01:00 "Lotte Ahrend" l.ahrend@belinquarry.example <<'MESSAGE'
Back to one interval until the new indicator is there

QW-51 came too early by my own doing: the old indicator shows 20 kg only. To be
taken up again after the verification in March (QW-58).
MESSAGE

mkdir tickets
cp "$later"/tree/tickets/QW-5[14].md tickets/
commit 2026-02-25T16:02:00+01:00 "Lotte Ahrend" l.ahrend@belinquarry.example <<'MESSAGE'
QW-51, QW-54
MESSAGE

cp "$later/tree/AGENT_MEMORY.md" .
commit 2026-03-26T17:20:00+01:00 "weighing agent" weighing-agent@belinquarry.example <<'MESSAGE'
Memory
MESSAGE

cp "$later/tree/tickets/QW-58.md" tickets/
commit 2026-04-13T08:31:00+02:00 "Lotte Ahrend" l.ahrend@belinquarry.example <<'MESSAGE'
QW-58: two intervals by certificate VB-2026-0311
MESSAGE
rm -rf "$later"
