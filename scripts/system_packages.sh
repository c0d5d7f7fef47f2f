#!/bin/sh
# Installs the system packages that some tests need, as root on Debian; elsewhere says what is
# skipped without them. Never fails: the tests that need a missing part say so themselves.

# What the tests look for, the package that has it, what is skipped without it.
parts() {
    echo "initdb postgresql the tests of the PostgreSQL store and of services"
    echo "redis-server redis-server the tests of services"
    echo "bwrap bubblewrap the tests of the sandbox"
    echo "tmux tmux the tests of interactive sessions"
    echo "chromium chromium the tests of the web board"
    echo "nginx nginx-light the test of the web board behind a proxy"
    echo "sshd openssh-server the test of the web board through a tunnel"
    echo "strace strace the tests of power cuts"
    echo "openssl openssl the tests of the login of a GitHub App"
    echo "ip iproute2 the tests of the real agents"
}

have() {
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || ls /usr/lib/postgresql/*/bin/"$1" >/dev/null 2>&1
}

missing() {
    parts | while read -r program package what; do
        have "$program" || echo "$package $what"
    done
}

packages=$(missing | cut -d ' ' -f 1 | tr '\n' ' ')
if [ -z "$packages" ]; then
    exit 0
fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing system packages: $packages"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # one word a package
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends $packages; } \
        >/dev/null || echo "apt-get did not install them" >&2
fi

missing | while read -r package what; do
    echo "skipped without the package $package: $what" >&2
done
exit 0
