# The repository with its history, then what is live on 24 March 2026, 17:00.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name platform-agent
git config user.email platform-agent@vennmoor.example
printf '.deploy/\n' > .gitignore

stamp "Lida Brakel" l.brakel@vennmoor.example 2026-01-12T10:20:00+01:00
git add .gitignore README.md docs changes/CHG-0207.md
git commit -q -m "Intake: how notes are checked, roots, CHG-0207"

stamp "Lida Brakel" l.brakel@vennmoor.example 2026-03-24T16:10:00+01:00
git add tickets/SEC-31.md
git commit -q -m "SEC-31: stolen signing key of vm-23"

deploy init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-11-03T08:30", "seed": "vennmoor", "user": "platform-agent", "first": 412}
{"op": "service", "at": "2025-11-03T08:30", "service": "intake", "version": "5.1.4"}
{"op": "service", "at": "2025-11-03T08:30", "service": "milkpay", "version": "2.9.0"}
{"op": "target", "at": "2025-11-03T08:31", "target": "hall-a", "about": "intake workers, hall A"}
{"op": "target", "at": "2025-11-03T08:31", "target": "hall-b", "about": "intake workers, hall B"}
{"op": "route", "at": "2025-11-03T08:32", "by": "lida", "route": "notes.in", "targets": {"hall-a": 50, "hall-b": 50}, "new": true}
{"op": "set", "at": "2025-11-03T08:40", "by": "lida", "service": "intake", "key": "notes.signature", "value": "required"}
{"op": "set", "at": "2025-11-03T08:41", "by": "lida", "service": "intake", "key": "trust.north", "value": "vm-23"}
{"op": "set", "at": "2025-11-03T08:41", "by": "lida", "service": "intake", "key": "trust.south", "value": "vm-23"}
{"op": "set", "at": "2025-11-03T08:42", "by": "lida", "service": "intake", "key": "trust.coast", "value": "vm-21 vm-23"}
{"op": "set", "at": "2025-11-03T08:42", "by": "lida", "service": "intake", "key": "trust.lab", "value": "vm-21 vm-23"}
{"op": "set", "at": "2025-11-03T08:44", "by": "lida", "service": "milkpay", "key": "payday", "value": "15"}
{"op": "release", "at": "2026-01-12T09:30", "by": "lida", "service": "intake", "version": "5.2.0", "percent": 50, "note": "CHG-0207"}
{"op": "promote", "at": "2026-01-12T10:05", "by": "lida", "service": "intake", "note": "CHG-0207"}
{"op": "set", "at": "2026-02-23T11:02", "by": "lida", "service": "intake", "key": "trust.north", "value": "vm-23 vm-25", "note": "SEC-31"}
{"op": "set", "at": "2026-02-23T11:02", "by": "lida", "service": "intake", "key": "trust.south", "value": "vm-23 vm-25", "note": "SEC-31"}
{"op": "set", "at": "2026-02-23T11:03", "by": "lida", "service": "intake", "key": "trust.coast", "value": "vm-21 vm-23 vm-25", "note": "SEC-31"}
{"op": "set", "at": "2026-03-24T16:42", "by": "lida", "service": "milkpay", "key": "slips.until", "value": "12", "note": "as every spring"}
LOG
