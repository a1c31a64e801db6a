# The desk's repository with its history, then the bank's ledger as of 23 June 2026, 09:05.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name royalties
git config user.email royalties@quillmark.example
printf '.bank/\n' > .gitignore

stamp "Beatrix Noll" b.noll@quillmark.example 2026-03-31T17:20:00+00:00
git add .gitignore README.md MEMORY.md docs tickets/WT-44.md tickets/WT-47.md
git commit -q -m "Desk pages and memory up to 2026-Q1"

stamp royalties royalties@quillmark.example 2026-05-13T09:30:00+00:00
git add rates.csv tickets/WT-52.md
git commit -q -m "WT-52: Lindahl, Maas and Okafor at 15 % from 1 April" \
    -m "By Ines Calder's look into the portal on 9 April and 12 May: relief for royalties ended on 31 March, new
applications received, not decided."

stamp royalties royalties@quillmark.example 2026-06-19T15:40:00+00:00
git add statements
git commit -q -m "2026-Q2 set up: five payments, tax on hold and for 10 July" \
    -m "Rates as in rates.csv (WT-44, WT-47, WT-52). Tax 6,381.00 on hold until 9 July, payment to the tax office on the 10th."

bank init --log - > /dev/null <<'LOG'
{"op": "begin", "at": "2026-05-04T09:00", "seed": "quillmark", "user": "royalties"}
{"op": "open", "at": "2026-05-04T09:00", "account": "30551200", "name": "Royalties account", "own": true, "opening": 6450000}
{"op": "open", "at": "2026-05-04T09:01", "account": "61120047", "name": "Ada Brandvold"}
{"op": "open", "at": "2026-05-04T09:01", "account": "61120062", "name": "Jon Lindahl"}
{"op": "open", "at": "2026-05-04T09:01", "account": "61120070", "name": "Saskia Maas"}
{"op": "open", "at": "2026-05-04T09:01", "account": "61120088", "name": "Chidi Okafor"}
{"op": "open", "at": "2026-05-04T09:02", "account": "61120095", "name": "Rui Silva"}
{"op": "open", "at": "2026-05-04T09:03", "account": "90004411", "name": "Tax office, tax at source"}
{"op": "open", "at": "2026-05-04T09:04", "account": "77310926", "name": "Canal House Lettings"}
{"op": "schedule", "at": "2026-05-26T10:10", "from": "30551200", "to": "61120062", "cents": 127500, "on": "2026-05-29", "reference": "2026-05 advance lindahl"}
{"op": "schedule", "at": "2026-05-26T10:11", "from": "30551200", "to": "61120088", "cents": 340000, "on": "2026-05-29", "reference": "2026-05 advance okafor"}
{"op": "schedule", "at": "2026-05-26T10:14", "from": "30551200", "to": "90004411", "cents": 82500, "on": "2026-06-10", "reference": "tax at source, May"}
{"op": "eod", "at": "2026-06-18T20:00", "until": "2026-06-18"}
{"op": "schedule", "at": "2026-06-19T15:02", "from": "30551200", "to": "61120047", "cents": 972000, "on": "2026-06-30", "reference": "2026-Q2 brandvold", "id": "P62A10"}
{"op": "schedule", "at": "2026-06-19T15:03", "from": "30551200", "to": "61120062", "cents": 734400, "on": "2026-06-30", "reference": "2026-Q2 lindahl", "id": "P62A27"}
{"op": "schedule", "at": "2026-06-19T15:04", "from": "30551200", "to": "61120070", "cents": 1054000, "on": "2026-06-30", "reference": "2026-Q2 maas", "id": "P62A31"}
{"op": "schedule", "at": "2026-06-19T15:05", "from": "30551200", "to": "61120088", "cents": 1827500, "on": "2026-06-30", "reference": "2026-Q2 okafor", "id": "P62A48"}
{"op": "schedule", "at": "2026-06-19T15:06", "from": "30551200", "to": "61120095", "cents": 415000, "on": "2026-06-30", "reference": "2026-Q2 silva", "id": "P62A55"}
{"op": "hold", "at": "2026-06-19T15:09", "account": "30551200", "cents": 638100, "until": "2026-07-09", "reason": "tax at source, 2026-Q2", "id": "H62B03"}
{"op": "schedule", "at": "2026-06-19T15:11", "from": "30551200", "to": "90004411", "cents": 638100, "on": "2026-07-10", "reference": "tax at source, 2026-Q2", "id": "P62A60"}
{"op": "schedule", "at": "2026-06-22T08:00", "by": "i.calder", "from": "30551200", "to": "77310926", "cents": 240000, "on": "2026-07-15", "reference": "rent, July", "id": "P62C01"}
{"op": "eod", "at": "2026-06-22T20:00", "until": "2026-06-22"}
{"op": "open", "at": "2026-06-23T09:05", "account": "61120101", "name": "Estate of H. Tamm"}
LOG
