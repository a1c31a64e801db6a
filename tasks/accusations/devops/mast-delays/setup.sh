# The repository with its history, then what is live on 15 April 2026, 08:00.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name mux-agent
git config user.email mux-agent@carricksound.example
printf '.deploy/\n' > .gitignore

stamp "Deirdre Auld" d.auld@carricksound.example 2026-03-27T16:20:00+00:00
git add .gitignore README.md docs tickets/TX-52.md
git commit -q -m "Multiplex: network, delays, TX-52"

stamp mux-agent mux-agent@carricksound.example 2026-03-30T23:08:00+01:00
git add changes/CHG-0033.md
git commit -q -m "CHG-0033: delays of north and isles for the feed over fibre" \
    -m "From tonight both masts are fed over fibre (TX-52). The feed is shorter in the north and longer to the isles than over the
satellite was, by Mastline's survey of 27 March; 312 and 455 bring all three masts to the same instant."

stamp mux-agent mux-agent@carricksound.example 2026-04-14T17:30:00+01:00
git add notes reports todo.md
git commit -q -m "Notes, list, report of 7 April"

deploy init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-08-18T09:00", "seed": "carrick", "user": "mux-agent", "first": 201}
{"op": "service", "at": "2025-08-18T09:00", "service": "mux", "version": "7.4.2"}
{"op": "service", "at": "2025-08-18T09:00", "service": "encode", "version": "3.3.0"}
{"op": "service", "at": "2025-08-18T09:00", "service": "guide", "version": "2.5.8"}
{"op": "set", "at": "2025-08-18T09:20", "by": "deirdre", "service": "mux", "key": "delay.town", "value": "0", "note": "house values, satellite"}
{"op": "set", "at": "2025-08-18T09:21", "by": "deirdre", "service": "mux", "key": "delay.north", "value": "12", "note": "house values, satellite"}
{"op": "set", "at": "2025-08-18T09:21", "by": "deirdre", "service": "mux", "key": "delay.isles", "value": "715", "note": "house values, satellite"}
{"op": "set", "at": "2025-08-18T09:30", "by": "deirdre", "service": "encode", "key": "loudness.one", "value": "-18"}
{"op": "set", "at": "2025-08-18T09:30", "by": "deirdre", "service": "encode", "key": "loudness.two", "value": "-18"}
{"op": "set", "at": "2025-08-18T09:31", "by": "deirdre", "service": "encode", "key": "loudness.speech", "value": "-20"}
{"op": "set", "at": "2025-08-18T09:40", "by": "deirdre", "service": "mux", "key": "label.one", "value": "CarrickSound 1"}
{"op": "set", "at": "2025-08-18T09:40", "by": "deirdre", "service": "mux", "key": "label.two", "value": "CarrickSound 2"}
{"op": "set", "at": "2025-08-18T09:41", "by": "deirdre", "service": "mux", "key": "label.speech", "value": "CarrickSoundTalk"}
{"op": "set", "at": "2026-03-30T22:41", "by": "mux-agent", "service": "mux", "key": "delay.north", "value": "312", "note": "CHG-0033"}
{"op": "set", "at": "2026-03-30T22:43", "by": "mux-agent", "service": "mux", "key": "delay.isles", "value": "455", "note": "CHG-0033"}
{"op": "set", "at": "2026-04-02T10:12", "by": "mux-agent", "service": "mux", "key": "guard.alert", "value": "off", "note": "todo 1"}
{"op": "set", "at": "2026-04-02T10:31", "by": "mux-agent", "service": "guide", "key": "days", "value": "8", "note": "todo 2"}
{"op": "set", "at": "2026-04-07T14:02", "by": "mux-agent", "service": "guide", "key": "pictures", "value": "small", "note": "todo 3"}
{"op": "set", "at": "2026-04-15T07:48", "by": "deirdre", "service": "guide", "key": "contact", "value": "studio@carricksound.example"}
LOG
