# All work in a clone as one commit, and what is new of it as a pack. Runs where the clone cannot be
# written, on a git directory, an index and an output of ours: no hook, filter or setting of the
# clone's own is heard. Arguments: the clone, our git directory, our output, the base commit, the
# task's last change (empty where there is none), and the files that are not the agent's to change.
set -u
work=$1 ours=$2 out=$3 base=$4 last=$5
shift 5
ulimit -n "$(ulimit -H -n)"  # git holds one for each level of directories

g() {
    git --git-dir="$ours" -c core.hooksPath=/dev/null -c core.attributesFile=/dev/null \
        -c core.excludesFile="$ours/info/exclude" -c core.fsmonitor=false -c gc.auto=0 \
        -c maintenance.auto=false -c protocol.file.allow=always -c safe.directory='*' "$@"
}

# The commits: as the clone has them, else those we know.
parent=${last:-$base}
if g fetch --quiet --no-tags --no-auto-maintenance --no-recurse-submodules --no-write-fetch-head \
    --upload-pack="git -c safe.directory='*' upload-pack" "$work" +HEAD:refs/lockgate/head; then
    parent=$(g rev-parse --verify --quiet 'refs/lockgate/head^{commit}') || parent=${last:-$base}
fi

# The files: all but those of repositories inside it, which are only named by their commits.
export GIT_INDEX_FILE="$out/index"
cd "$work" || exit 2
g read-tree "$parent" || exit 2
printf '.\0' >"$out/paths"
find . -path ./.git -prune -o -name .git -printf ':(exclude,literal)%h\0' >>"$out/paths"
g --work-tree="$work" add --all --ignore-errors \
    --pathspec-from-file="$out/paths" --pathspec-file-nul
[ $? -le 1 ] || exit 2

# Lockgate's own files are never part of a change: there they are as the base commit has them.
g --literal-pathspecs ls-files -z -- "$@" |
    g --work-tree="$work" update-index -z --force-remove --stdin || exit 2
g ls-tree -r -z "$base" -- "$@" | g update-index -z --index-info || exit 2

tree=$(g write-tree) || exit 2
tree_of() { g rev-parse --verify --quiet "$1^{tree}"; }
if [ "$(tree_of "$parent")" = "$tree" ]; then
    commit=$parent
elif [ -n "$last" ] && [ "$(tree_of "$last")" = "$tree" ] &&
    [ "$(g rev-parse --verify --quiet "$last^1")" = "$parent" ]; then
    commit=$last
else
    commit=$(GIT_AUTHOR_NAME=lockgate GIT_AUTHOR_EMAIL=lockgate@localhost \
        GIT_COMMITTER_NAME=lockgate GIT_COMMITTER_EMAIL=lockgate@localhost \
        g commit-tree -p "$parent" -m 'Work not committed by the agent' "$tree") || exit 2
fi

if [ "$commit" != "$last" ] && [ "$commit" != "$base" ]; then
    printf '%s\n' "$commit" "^$base" ${last:+"^$last"} |
        g pack-objects --quiet --revs --stdout >"$out/pack" || exit 2
fi
printf '%s\n' "$commit" >"$out/commit"
