#!/bin/bash
set -euo pipefail
uvx --offline --from harbor-rewardkit==0.1 rewardkit /tests --workspace /app --output /logs/verifier/reward.json
