#!/bin/sh
# find_python.sh NAME: where the first interpreter of that name is that runs, and its version.
# pyenv puts a `python3.13` on PATH that runs only where it was chosen; then pyenv's own is taken.

where='import sys; print(sys.executable, "%d.%d" % sys.version_info[:2])'
first=$(command -v "$1") || exit 1
for it in "$first" "${first%/shims/*}"/versions/*/bin/"$1"; do
    "$it" -c "$where" 2>/dev/null && exit 0
done
exit 1
