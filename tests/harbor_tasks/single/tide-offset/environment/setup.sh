#!/usr/bin/env bash
set -euo pipefail
APP_DIR="${APP_DIR:-/app}"
cd "$APP_DIR"
git init -q
git config user.name tide-desk
git config user.email desk@skerrow.example
export GIT_AUTHOR_DATE=2026-02-03T09:00:00Z GIT_COMMITTER_DATE=2026-02-03T09:00:00Z
echo '{"station": "'"$STATION"'", "offset": 0, "heights": [1.2, 3.4, 0.9, 3.1]}' > tides.json
git add tides.json
git commit -q -m "Table of the standard port"
sed -i 's/"offset": 0/"offset": 37/' tides.json
echo 'Gauge GA-12 ran beside the pier for a lunar month: 37 minutes after the standard port (survey of 30 January).' > survey.md
git add tides.json survey.md
git commit -q -m "Offset of 37 minutes, by the survey of 30 January"
echo "$APP_DIR" > built-at.txt
