# The repository with its history up to 30 March 2026.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
stamp() {
    export GIT_AUTHOR_NAME="$1" GIT_AUTHOR_EMAIL="$2" GIT_AUTHOR_DATE="$3"
    export GIT_COMMITTER_NAME="$1" GIT_COMMITTER_EMAIL="$2" GIT_COMMITTER_DATE="$3"
}
git init -q -b main .
git config user.name web-agent
git config user.email web-agent@quillon.example
printf '__pycache__/\n' > .gitignore

stamp "Osric Bell" osric@quillon.example 2025-09-08T11:00:00+01:00
git add .gitignore README.md docs site tools
git commit -q -m "Headers as files"

stamp "Osric Bell" osric@quillon.example 2025-11-17T09:20:00+00:00
git add MEMORY.md
git commit -q -m "Memory after the season"

stamp "Wilma Trent" wilma@quillon.example 2026-03-30T10:45:00+01:00
git add tickets
git commit -q -m "PT-60, PT-63"
