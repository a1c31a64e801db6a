# The web as it was in January, the letters, then the commit of 4 May with what lies in the workspace.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name web-agent
git config user.email web-agent@ashgrove.example
printf '__pycache__/\n' > .gitignore

mv web .after
mkdir web
cp .after/labels.csv web/
sed -e 's/, "was": "Tarvenia \w*", "decision": "ND-412"//; s/"also": "Tarvenia mollis", "decision": "ND-412", "bed": "H030, H031"/"bed": "H030"/' \
    -e 's/ossimia-\(alba\|crispa\)/tarvenia-\1/; s/Ossimia \(alba\|crispa\)/Tarvenia \1/' \
    -e 's/^  "vellen/  "tarvenia-mollis": {"name": "Tarvenia mollis", "bed": "H031"},\n  "vellen/' .after/pages.json > web/pages.json
printf '{\n  "/plants/merrowia-verna": "/plants/merrowia-vernalis"\n}\n' > web/redirects.json
sed -e 's/ossimia-\(alba\|crispa\)/tarvenia-\1/; s/ossimia-lanata/tarvenia-mollis/' .after/feed.json > web/feed.json
{ sed -e 's/ossimia-\(alba\|crispa\)/tarvenia-\1/' .after/sitemap.txt; echo /plants/tarvenia-mollis; } | sort > web/sitemap.txt
sed -e 's/ossimia-\(alba\|crispa\)/tarvenia-\1/; s/Ossimia \(alba\|crispa\)/Tarvenia \1/' \
    -e '/^26-054/s/Ossimia lanata/Tarvenia mollis/; /^26-054/s/ossimia-lanata/tarvenia-mollis/' .after/seeds.csv > web/seeds.csv

stamp "Ruth Okell" r.okell@ashgrove.example 2026-01-05T15:00:00+00:00
git add .gitignore README.md docs tools web register/ND-398.md
git commit -q -m "Web of the garden, names up to ND-398"

stamp "Ruth Okell" r.okell@ashgrove.example 2026-04-30T16:25:00+01:00
git add register/ND-412.md
git commit -q -m "ND-412: in effect from 1 May, looked up in the database today"

rm -r web
mv .after web
stamp web-agent web-agent@ashgrove.example 2026-05-04T09:50:00+01:00
git add web
git commit -q -m "ND-412: Tarvenia becomes Ossimia" \
    -m "alba and crispa renamed, mollis united with lanata and so under sheet S-14. Old addresses lead on, since labels and
leaflets use them. Feed entries keep their ids. Basis: register/ND-412.md, in effect from 1 May by the database on 30 April."
