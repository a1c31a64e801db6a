# The data desk's repository: the series as it was, the correction of 6 May, then the mail of 21 May.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null PYTHONDONTWRITEBYTECODE=1
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name data-desk
git config user.email data-desk@vranawater.example
later=$(mktemp -d)
cp -a . "$later/tree"
mkdir -p published/2026

rm -r inbox corrections/2026-05-06-V4.md
sed -i '/^from = 2026-03-10/,$d' stations/V4.toml
sed -i '${/^\[\[zero\]\]$/d}' stations/V4.toml
sed -i '${/^$/d}' stations/V4.toml
sed -i '/^2026-05-0[6-9]\|^2026-05-[12]/d' readings/*.csv
python3 tools/publish.py R1 corrections/2026-02-11-R1.md > /dev/null
python3 tools/publish.py V4 > /dev/null
stamp "Vesna Kolar" v.kolar@vranawater.example 2026-05-06T07:40:00+02:00
git add -A
git commit -q -m "Gauges, readings and published series, 2026 so far"

cp -a "$later/tree/stations" "$later/tree/corrections" .
python3 tools/publish.py V4 corrections/2026-05-06-V4.md > /dev/null
stamp data-desk data-desk@vranawater.example 2026-05-06T11:18:00+02:00
git add -A
git commit -q -m "V4: zero 211.76 since the ice, series published again" \
    -m "The staff at Stari Most was lifted in the night to 10 March and levelled on 28 April: 211.762 from bolt 4417, sheet 131
(mail of the survey office, 29 April). Applies from 10 March, agreed with Vesna Kolar. Note in corrections/.
What counts is the sheet in the office's register of heights, which we cannot see from here."

cp -a "$later/tree/readings" .
python3 tools/publish.py R1 > /dev/null
python3 tools/publish.py V4 > /dev/null
stamp readings readings@vranawater.example 2026-05-20T08:00:00+02:00
git add -A
git commit -q -m "Readings to 20 May"

cp -a "$later/tree/inbox" .
rm -rf "$later"
stamp "mail room" post@vranawater.example 2026-05-21T09:05:00+02:00
git add -A
git commit -q -m "Mail of 21 May"
