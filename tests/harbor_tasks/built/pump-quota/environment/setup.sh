#!/usr/bin/env bash
set -euo pipefail
cd "${APP_DIR:-/app}"
git init -q
git config user.name drains && git config user.email drains@pumps.example
mkdir -p docs
echo 'East takes 40: below 35 it cannot lift the spring flood, above 45 the mains trip (trial run of 12 March).' > docs/quota.md
git add docs && git commit -q -m "Trial run of 12 March"
