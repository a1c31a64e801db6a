#!/bin/bash
set -euo pipefail
python3 /tests/replay.py > /logs/verifier/reward.json
