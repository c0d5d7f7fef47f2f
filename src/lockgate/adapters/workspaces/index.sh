# The files of a clone in an index of ours: all but dependencies, caches and what lies in repositories
# inside it, which are only named by their commits. No hook, filter or setting of the clone's own is
# heard. Arguments: the clone, our git directory, our output, the base commit.
set -u
work=$1 ours=$2 out=$3 base=$4
shift 4
export LC_ALL=C
ulimit -n "$(ulimit -H -n)"  # git holds one for each level of directories

g() {
    git --git-dir="$ours" -c core.hooksPath=/dev/null -c core.attributesFile=/dev/null \
        -c core.excludesFile="$ours/info/exclude" -c core.fsmonitor=false -c gc.auto=0 \
        -c maintenance.auto=false -c protocol.file.allow=always -c safe.directory='*' "$@"
}

cannot_read() {
    cat "$out/unread" >&2
    exit 2
}

# Starts as this commit, and takes in the files as they are.
fill_index() {
    export GIT_INDEX_FILE="$out/index"
    cd "$work" || exit 2
    g read-tree "$1" 2>"$out/unread" || cannot_read
    rm -f "$out/unread"
    printf '.\0' >"$out/paths"
    find . -path ./.git -prune -o \
        -name .git -fprintf "$out/inner" ':(exclude,literal)%h\0' -o \
        -path './*/*' -type f \( -name CACHEDIR.TAG -o -name pyvenv.cfg \) \
        -fprintf "$out/marks" '%P\0'
    if [ -s "$out/marks" ]; then  # folders that say what they are, where base has no files in them
        sed -z 's,/[^/]*$,,' "$out/marks" | sort -zu >"$out/marked"
        g ls-tree -r -d -z --name-only "$base" | sort -z |
            comm -z -13 - "$out/marked" >"$out/caches"
        sed -z 's/^/:(exclude,literal)/' "$out/caches" >>"$out/inner"
    fi
    cat "$out/inner" >>"$out/paths"

    g --work-tree="$work" add --all --ignore-errors \
        --pathspec-from-file="$out/paths" --pathspec-file-nul
    [ $? -le 1 ] || exit 2
    g --work-tree="$work" ls-files -z --cached --ignored \
        --exclude-from="$ours/info/dependencies" >"$out/drop" || exit 2
    if [ -s "$out/caches" ]; then
        xargs -0 git --git-dir="$ours" --literal-pathspecs ls-files -z -- <"$out/caches" \
            >>"$out/drop" || exit 2
    fi
    drop
}

drop() {
    [ ! -s "$out/drop" ] || g --work-tree="$work" update-index -z --force-remove --stdin <"$out/drop" ||
        exit 2
}
