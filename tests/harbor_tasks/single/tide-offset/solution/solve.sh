#!/bin/bash
set -euo pipefail
cd "${APP_DIR:-/app}"
sed -i "s/\"offset\": 37/\"offset\": $OFFSET/" tides.json
git commit -qam "Back to the standard port"
