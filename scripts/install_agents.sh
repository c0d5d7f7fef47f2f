#!/bin/sh
# Installs the agents' programs that `make test-agents` drives, each at one version, into DIR
# (default: $LOCKGATE_AGENTS or ~/.cache/lockgate-agents). DIR/bin has a link to each program.
set -eu

dir=${1:-${LOCKGATE_AGENTS:-$HOME/.cache/lockgate-agents}}
python=${PYTHON:-python3}

fail() {
    printf 'The agents are not installed: %s\n' "$1" >&2
    exit 1
}

command -v npm >/dev/null || fail "npm is missing. Install Node.js 20 or later."
mkdir -p "$dir/bin"
dir=$(cd "$dir" && pwd)

# A stamp names what is installed, so that a second run has nothing to do and a new version does.
is_there() { [ "$(cat "$dir/$1/.installed" 2>/dev/null)" = "$2" ]; }

npm_package() { # NAME PACKAGE@VERSION
    is_there "$1" "$2" && return
    echo "installing $2"
    rm -rf "${dir:?}/$1"
    mkdir -p "$dir/$1"
    echo '{"private": true}' >"$dir/$1/package.json"
    # The version is exact: a newer npm package may name a Node that is not here, though its
    # program is native and needs none; npm would then take an old one without a word.
    (cd "$dir/$1" && npm install --save-exact --no-audit --no-fund --loglevel=error "$2") \
        || fail "npm could not install $2."
    ln -sfn "../$1/node_modules/.bin/$1" "$dir/bin/$1"
    printf '%s' "$2" >"$dir/$1/.installed"
}

npm_package claude @anthropic-ai/claude-code@2.1.325
npm_package codex @openai/codex@0.166.0
npm_package gemini @google/gemini-cli@0.61.0
npm_package opencode opencode-ai@1.18.33

aider=aider-chat==0.86.2
if ! is_there aider "$aider"; then
    echo "installing $aider"
    rm -rf "$dir/aider"
    "$python" -m venv "$dir/aider"
    "$dir/aider/bin/python" -m pip install --quiet --disable-pip-version-check "$aider" \
        || fail "pip could not install $aider with $("$python" --version)."
    ln -sfn ../aider/bin/aider "$dir/bin/aider"
    printf '%s' "$aider" >"$dir/aider/.installed"
fi
