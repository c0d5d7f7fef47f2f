#!/bin/sh
# Installs the test runners that `make test-runners` judges changes with, each at one version, into
# DIR (default: $LOCKGATE_RUNNERS or /opt/lockgate-runners; sandboxes must be able to read it).
set -eu

dir=${1:-${LOCKGATE_RUNNERS:-/opt/lockgate-runners}}
packages="jest@30.5.2 jest-junit@17.0.0 vitest@4.1.12"

fail() {
    printf 'The test runners are not installed: %s\n' "$1" >&2
    exit 1
}

command -v npm >/dev/null || fail "npm is missing. Install Node.js 20 or later."
if [ "$(cat "$dir/.installed" 2>/dev/null)" != "$packages" ]; then
    echo "installing $packages"
    mkdir -p "$dir"
    echo '{"private": true}' >"$dir/package.json"
    # shellcheck disable=SC2086  # one word a package
    (cd "$dir" && npm install --save-exact --no-audit --no-fund --loglevel=error $packages) \
        || fail "npm could not install them."
    printf '%s' "$packages" >"$dir/.installed"
fi
if ! command -v go >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing golang-go"
    apt-get -qq install -y --no-install-recommends golang-go >/dev/null || true
fi
command -v go >/dev/null || fail "go is missing. Install Go 1.19 or later."
