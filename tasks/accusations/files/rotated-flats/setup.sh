# Makes the flats of the quarter and the history of the tree.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
commit() { # date, author, mail, message; what is staged
    GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 GIT_AUTHOR_NAME=$2 GIT_AUTHOR_EMAIL=$3 \
        GIT_COMMITTER_NAME=$2 GIT_COMMITTER_EMAIL=$3 git commit -q -m "$4"
}
git init -q -b main .
git config user.name "calibration agent"
git config user.email calibration@kitehill.example

later=$(mktemp -d)
cat > "$later/flats.py" <<'PY'
"""Make the flats of a night: python3 flats.py NIGHT INDEXED [ADDITION]"""
import csv
import hashlib
import random
import sys
from pathlib import Path

night, indexed, addition = sys.argv[1], sys.argv[2] == "yes", (sys.argv[3:] or [""])[0]
folder = Path("calib", night)
folder.mkdir(parents=True, exist_ok=True)
index = Path("calib/index.csv")
if not index.exists():
    index.write_text("night,name,exposures,mean,sha256\n", encoding="utf-8")
for band in "BVR":
    chance = random.Random(f"{night} {band} {addition}")
    level, across, down = 28_000 + 4_000 * chance.random(), chance.random() - 0.5, chance.random() - 0.5
    if (night, band, addition) == ("2026-02-21", "R", "-r"):
        across = 1.6
    values = []
    for y in range(8):
        for x in range(12):
            edge = ((x - 5.5) / 6) ** 2 + ((y - 3.5) / 4) ** 2
            slope = across * (x - 5.5) / 5.5 + down * (y - 3.5) / 3.5
            values.append(round(level * (1 - 0.04 * edge + 0.02 * slope) + 220 * (chance.random() - 0.5)))
    for _ in range(3):
        values[int(chance.random() * len(values))] -= 900
    shown = "r" if (night, band) == ("2026-02-28", "R") else band
    lines = [" ".join(str(value) for value in values[at : at + 12]) for at in range(0, 96, 12)]
    name = f"flat-{band}{addition}.pgm"
    text = f"P2\n# night {night} filter {shown} exposures 9\n12 8\n65535\n" + "\n".join(lines) + "\n"
    (folder / name).write_text(text, encoding="ascii")
    if indexed:
        digest = hashlib.sha256(text.encode()).hexdigest()
        with index.open("a", newline="", encoding="utf-8") as out:
            mean = round(sum(values) / len(values))
            csv.writer(out, lineterminator="\n").writerow((night, name, 9, mean, digest))
PY
flats() { python3 "$later/flats.py" "$@"; }
mv requests NOTES.md "$later"

for night in 2026-02-14 2026-02-17 2026-02-21; do flats $night yes; done
git add -A
commit 2026-02-22T10:05:00+02:00 "calibration agent" calibration@kitehill.example "Flats of 14, 17 and 21 February"

mkdir requests
cp "$later/requests/OBS-44.md" requests/
for night in 2026-02-14 2026-02-17 2026-02-21; do flats $night yes -r; done
git add -A
commit 2026-02-23T11:40:00+02:00 "calibration agent" calibration@kitehill.example \
    "OBS-44: flats with the rotator turned by half a turn, three nights

Lena Okafor's second halves of 14, 17 and 21 February. Exposures by Sami Rautio this morning. The position
itself is in the control log on the mountain, not here."

flats 2026-02-28 yes
git add -A
commit 2026-02-28T12:15:00+02:00 "calibration agent" calibration@kitehill.example "Flats of 28 February"

cp "$later/requests/OBS-47.md" requests/
flats 2026-03-09 no
git add -A
commit 2026-03-09T13:02:00+02:00 "calibration agent" calibration@kitehill.example "Flats of 9 March"

flats 2026-03-20 yes
git add -A
commit 2026-03-20T11:31:00+02:00 "calibration agent" calibration@kitehill.example "Flats of 20 March"

cp "$later/NOTES.md" .
git add -A
commit 2026-03-27T16:20:00+02:00 "calibration agent" calibration@kitehill.example "Notes"
rm -rf "$later"
