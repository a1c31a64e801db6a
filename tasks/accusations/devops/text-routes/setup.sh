# The repository with its history, then what is live on 3 March 2026, 14:00.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name msg-agent
git config user.email msg-agent@hythelockers.example
printf '.deploy/\n' > .gitignore

stamp "Noor Haddad" noor@hythelockers.example 2026-02-17T15:10:00+01:00
git add .gitignore README.md docs changes/CHG-0409.md tickets/MSG-207.md
git commit -q -m "Providers, routes, CHG-0409, MSG-207"

stamp "Piet Soms" piet@hythelockers.example 2026-02-26T16:42:00+01:00
git add tickets/MSG-211.md
git commit -q -m "MSG-211: HYTHE is in the registers of NO, SE and DK with Larkfield"

stamp msg-agent msg-agent@hythelockers.example 2026-03-02T21:52:00+01:00
git add changes/CHG-0418.md
git commit -q -m "CHG-0418: NO, SE and DK leave through Larkfield" \
    -m "The registers take effect at midnight. Brindle's entries for HYTHE lapse today (MSG-207), Larkfield's are in
(MSG-211, seen by Piet in the portal and on the register's page). Finland stays with Brindle: no register, no
contract with Larkfield. Test messages to the office handsets arrived in all four countries."

stamp monitoring monitoring@hythelockers.example 2026-03-03T14:00:00+01:00
git add alerts reports
git commit -q -m "Alert 2026-03-03: receipts"

deploy init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2025-10-06T09:00", "seed": "hythe", "user": "msg-agent", "first": 83}
{"op": "service", "at": "2025-10-06T09:00", "service": "notify", "version": "4.8.3"}
{"op": "service", "at": "2025-10-06T09:00", "service": "lockers", "version": "7.2.0"}
{"op": "target", "at": "2025-10-06T09:00", "target": "brindle", "about": "text messages (Brindle)"}
{"op": "target", "at": "2025-10-06T09:00", "target": "larkfield", "about": "text messages (Larkfield)"}
{"op": "target", "at": "2025-10-06T09:00", "target": "postbox", "about": "mail"}
{"op": "route", "at": "2025-10-06T09:01", "by": "noor", "route": "sms.no", "targets": {"brindle": 100}, "new": true}
{"op": "route", "at": "2025-10-06T09:01", "by": "noor", "route": "sms.se", "targets": {"brindle": 100}, "new": true}
{"op": "route", "at": "2025-10-06T09:01", "by": "noor", "route": "sms.dk", "targets": {"brindle": 100}, "new": true}
{"op": "route", "at": "2025-10-06T09:01", "by": "noor", "route": "sms.fi", "targets": {"brindle": 100}, "new": true}
{"op": "route", "at": "2025-10-06T09:02", "by": "noor", "route": "mail.out", "targets": {"postbox": 100}, "new": true}
{"op": "set", "at": "2025-10-06T09:10", "by": "noor", "service": "notify", "key": "receipts.callback", "value": "https://notify.hythelockers.example/receipts"}
{"op": "release", "at": "2026-02-17T10:02", "by": "piet", "service": "notify", "version": "4.9.1", "percent": 10, "note": "CHG-0409"}
{"op": "promote", "at": "2026-02-17T13:30", "by": "piet", "service": "notify", "note": "CHG-0409"}
{"op": "set", "at": "2026-02-17T13:40", "by": "piet", "service": "notify", "key": "sender.no", "value": "HYTHE", "note": "CHG-0409"}
{"op": "set", "at": "2026-02-17T13:40", "by": "piet", "service": "notify", "key": "sender.se", "value": "HYTHE", "note": "CHG-0409"}
{"op": "set", "at": "2026-02-17T13:40", "by": "piet", "service": "notify", "key": "sender.dk", "value": "HYTHE", "note": "CHG-0409"}
{"op": "set", "at": "2026-02-17T13:40", "by": "piet", "service": "notify", "key": "sender.fi", "value": "HYTHE", "note": "CHG-0409"}
{"op": "route", "at": "2026-03-02T21:31", "by": "msg-agent", "route": "sms.no", "targets": {"larkfield": 100}, "note": "CHG-0418, MSG-207, MSG-211"}
{"op": "route", "at": "2026-03-02T21:33", "by": "msg-agent", "route": "sms.se", "targets": {"larkfield": 100}, "note": "CHG-0418, MSG-207, MSG-211"}
{"op": "route", "at": "2026-03-02T21:34", "by": "msg-agent", "route": "sms.dk", "targets": {"larkfield": 100}, "note": "CHG-0418, MSG-207, MSG-211"}
{"op": "release", "at": "2026-03-03T09:40", "by": "k.bell", "service": "lockers", "version": "7.2.1", "percent": 10, "note": "CHG-0420"}
{"op": "promote", "at": "2026-03-03T13:48", "by": "k.bell", "service": "lockers", "note": "CHG-0420"}
LOG
