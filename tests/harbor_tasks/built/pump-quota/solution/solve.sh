#!/bin/bash
set -euo pipefail
cd "${APP_DIR:-/app}"
./skills/pump/run.sh quota east 20
