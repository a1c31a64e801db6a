# The repository with its history, then what is live on 5 May 2026, 09:00.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name readings-agent
git config user.email readings-agent@brannhill.example
printf '.deploy/\n' > .gitignore

stamp "Signe Moll" s.moll@brannhill.example 2026-01-26T14:05:00+01:00
git add .gitignore README.md docs changes/CHG-0066.md tickets/MTR-70.md
git commit -q -m "Readings chain, concentrators accepted (MTR-70)"

stamp "Signe Moll" s.moll@brannhill.example 2026-05-05T08:40:00+02:00
git add tickets/MTR-74.md
git commit -q -m "MTR-74: readings that come more than once"

deploy init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-09-01T08:00", "seed": "brannhill", "user": "readings-agent", "first": 640}
{"op": "service", "at": "2025-09-01T08:00", "service": "intake", "version": "3.0.2"}
{"op": "service", "at": "2025-09-01T08:00", "service": "billing", "version": "11.4.1"}
{"op": "service", "at": "2025-09-01T08:00", "service": "alarms", "version": "1.8.0"}
{"op": "target", "at": "2025-09-01T08:01", "target": "store-1", "about": "readings store, first machine"}
{"op": "route", "at": "2025-09-01T08:01", "by": "signe", "route": "readings.in", "targets": {"store-1": 100}, "new": true}
{"op": "set", "at": "2025-09-01T08:05", "by": "signe", "service": "billing", "key": "source", "value": "raw"}
{"op": "set", "at": "2025-09-01T08:05", "by": "signe", "service": "billing", "key": "debit.day", "value": "28"}
{"op": "set", "at": "2025-09-01T08:06", "by": "signe", "service": "alarms", "key": "source", "value": "raw"}
{"op": "set", "at": "2025-09-01T08:06", "by": "signe", "service": "alarms", "key": "night.limit.kwh", "value": "6"}
{"op": "release", "at": "2026-01-26T10:00", "by": "signe", "service": "intake", "version": "3.2.0", "percent": 100, "note": "CHG-0066"}
{"op": "promote", "at": "2026-01-26T11:30", "by": "signe", "service": "intake", "note": "CHG-0066"}
{"op": "set", "at": "2026-01-26T11:35", "by": "signe", "service": "intake", "key": "repeat.mill", "value": "pass", "note": "CHG-0066"}
{"op": "set", "at": "2026-01-26T11:35", "by": "signe", "service": "intake", "key": "repeat.hill", "value": "pass", "note": "CHG-0066"}
{"op": "set", "at": "2026-01-26T11:36", "by": "signe", "service": "intake", "key": "repeat.quay", "value": "pass", "note": "CHG-0066"}
{"op": "set", "at": "2026-01-26T11:37", "by": "signe", "service": "intake", "key": "parked.days", "value": "400", "note": "CHG-0066"}
{"op": "set", "at": "2026-05-05T08:20", "by": "signe", "service": "alarms", "key": "on.call", "value": "desk-2"}
LOG
