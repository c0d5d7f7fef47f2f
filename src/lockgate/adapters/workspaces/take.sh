# All work in a clone as one commit, and what is new of it as a pack. Runs after index.sh, where the
# clone cannot be written. More arguments: the task's last change (empty where there is none), who
# the work is by and who commits it, the message, and the files that are not the agent's to change.
last=$1 author=$2 author_email=$3 committer=$4 committer_email=$5 message=$6
shift 6

# The commits: as the clone has them, else those we know.
parent=${last:-$base}
if g fetch --quiet --no-tags --no-auto-maintenance --no-recurse-submodules --no-write-fetch-head \
    --upload-pack="git -c safe.directory='*' upload-pack" "$work" +HEAD:refs/lockgate/head; then
    parent=$(g rev-parse --verify --quiet 'refs/lockgate/head^{commit}') || parent=${last:-$base}
fi
hand_over() {
    if [ "$1" != "$last" ] && [ "$1" != "$base" ]; then
        printf '%s\n' "$1" "^$base" ${last:+"^$last"} |
            g pack-objects --quiet --revs --stdout >"$out/pack" || exit 2
    fi
    printf '%s\n' "$1" >"$out/commit"
    exit 0
}

# A commit whose tree git does not read is handed over as it is, with git's words beside it.
cannot_read() { hand_over "$parent"; }
fill_index "$parent"

# What the set-up made and nobody changed is as base has it, which is mostly not at all.
if [ -s "$ours/made" ]; then
    g ls-files --stage -z | sort -z | comm -z -12 - "$ours/made" | cut -z -f 2- | sort -z >"$out/drop"
    drop
    g ls-tree -r -z --name-only "$base" | sort -z | comm -z -12 - "$out/drop" |
        xargs -0 -r git --git-dir="$ours" ls-tree -r -z "$base" -- |
        g update-index -z --index-info || exit 2
fi

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
    commit=$(printf '%s' "$message" |
        GIT_AUTHOR_NAME=$author GIT_AUTHOR_EMAIL=$author_email \
        GIT_COMMITTER_NAME=$committer GIT_COMMITTER_EMAIL=$committer_email \
        g commit-tree -p "$parent" "$tree") || exit 2
fi

hand_over "$commit"
