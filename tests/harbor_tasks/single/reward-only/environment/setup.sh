set -e
cd /app
test "$CATALOGUE" = letters
sort -o sorted.csv index.csv
