#!/bin/sh
# Tries on the real GitHub what docs/pull-requests.md lists as not yet tried. For a maintainer with a token:
#
#     LOCKGATE_GITHUB_TOKEN=... scripts/try_github.sh OWNER/REPO [--sign] [--merge-queue]
#
# It touches only the repository that you name: a branch lockgate/try-..., one pull request, one status on
# its commit. It closes and deletes them at the end and merges nothing, but with --merge-queue it puts the
# pull request into the merge queue, which merges one new file. It prints a table; nothing is sent elsewhere.
set -eu

api=${LOCKGATE_GITHUB_API:-https://api.github.com}
fail() {
    printf 'Nothing was tried: %s\n  %s\n' "$1" "$2" >&2
    exit 2
}

repo=
sign=false
queue=false
for word in "$@"; do
    case $word in
        --sign) sign=true ;;
        --merge-queue) queue=true ;;
        -*) fail "$word is no option." "usage: try_github.sh OWNER/REPO [--sign] [--merge-queue]" ;;
        *) [ -z "$repo" ] || fail "one repository is enough." "name only one: OWNER/REPO"
           repo=$word ;;
    esac
done
case $repo in
    */*/* | /* | */ | *[!A-Za-z0-9._/-]*) fail "$repo is no name of a repository." "name it as OWNER/REPO" ;;
    */*) ;;
    *) fail "no repository is named." "name one that you may spoil: try_github.sh OWNER/REPO" ;;
esac
[ -n "${LOCKGATE_GITHUB_TOKEN:-}" ] \
    || fail "LOCKGATE_GITHUB_TOKEN is not set." "set it to a token for $repo: an App's, fine-grained or classic"
for program in curl git python3; do
    command -v "$program" >/dev/null || fail "$program is missing." "install it"
done
remote=${LOCKGATE_GITHUB_GIT:-https://github.com/$repo.git}
branch=lockgate/try-$(date +%s)
work=$(mktemp -d)
number=

# The token is never an argument of a program: other users can read those.
ask() { # METHOD PATH [BODY]: the answer is in $work/answer, its code is printed
    printf 'header = "Authorization: Bearer %s"\n' "$LOCKGATE_GITHUB_TOKEN" | curl --config - \
        --silent --show-error --max-time 60 --request "$1" --output "$work/answer" --write-out '%{http_code}' \
        --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
        ${3:+--header 'Content-Type: application/json' --data "$3"} "$api$2"
}
pick() { # EXPRESSION over `it`: a value of the last answer
    python3 -c 'import json, sys
it = json.load(open(sys.argv[1]))
try:
    print(eval(sys.argv[2]))
except (KeyError, IndexError, TypeError):
    print("")' "$work/answer" "$1"
}
remote_git() {
    basic=$(printf 'x-access-token:%s' "$LOCKGATE_GITHUB_TOKEN" | base64 | tr -d '\n')
    GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader \
        GIT_CONFIG_VALUE_0="Authorization: Basic $basic" git "$@"
}
say() { printf '\n%s\n' "$1"; }
row() { printf '| %s | %s |\n' "$1" "$2" >>"$work/table"; }
tidy() {
    if [ -n "$number" ]; then
        say "Closing the pull request and deleting the branch."
        ask PATCH "/repos/$repo/pulls/$number" '{"state": "closed"}' >/dev/null || true
        ask DELETE "/repos/$repo/git/refs/heads/$branch" >/dev/null || true
    fi
    rm -rf "$work"
}
trap tidy EXIT

say "1. Which permissions does this token have? Each call that Lockgate reads with is made once."
tip_of() { ask GET "/repos/$repo/branches/$1" >/dev/null; pick "it['commit']['sha']"; }
code=$(ask GET "/repos/$repo")
[ "$code" = 200 ] || fail "GitHub answers $code for $repo." "give the token access to it"
base=$(pick "it['default_branch']")
tip=$(tip_of "$base")
row "the repository" "$code"
for path in pulls issues "commits/$tip/check-runs" "commits/$tip/status" "actions/runs?head_sha=$tip" \
    "rules/branches/$base" "branches/$base/protection"; do
    row "GET $path" "$(ask GET "/repos/$repo/$path")"
done
ask GET "/repos/$repo/rules/branches/$base" >/dev/null
has_queue=$(pick "any(rule['type'] == 'merge_queue' for rule in it)")

say "2. Pushing a branch with one new file and opening a pull request."
remote_git clone --quiet --depth 1 --branch "$base" "$remote" "$work/clone"
cd "$work/clone"
mkdir -p lockgate-try
date >"lockgate-try/$(basename "$branch")"
git add lockgate-try
git config user.name >/dev/null || git config user.name Lockgate
git config user.email >/dev/null || git config user.email lockgate@localhost
if $sign; then
    git commit --quiet --gpg-sign --message "Try GitHub"
else
    git commit --quiet --no-gpg-sign --message "Try GitHub"
fi
head=$(git rev-parse HEAD)
remote_git push --quiet "$remote" "HEAD:refs/heads/$branch"
cd "$work"
code=$(ask POST "/repos/$repo/pulls" \
    "{\"title\": \"Lockgate tries GitHub\", \"head\": \"$branch\", \"base\": \"$base\", \"body\": \"It is closed by itself.\"}")
row "POST pulls" "$code"
[ "$code" = 201 ] || { cat "$work/answer" >&2; exit 1; }
number=$(pick "it['number']")
echo "pull request $number of $repo"

say "3. Does a status or a check leave updated_at of the pull request alone?"
ask GET "/repos/$repo/pulls/$number" >/dev/null
before=$(pick "it['updated_at']")
sleep "${LOCKGATE_TRY_WAIT:-5}"
row "POST statuses" "$(ask POST "/repos/$repo/statuses/$head" '{"state": "success", "context": "lockgate/try"}')"
row "POST check-runs (Apps only)" "$(ask POST "/repos/$repo/check-runs" \
    "{\"name\": \"lockgate/try\", \"head_sha\": \"$head\", \"status\": \"completed\", \"conclusion\": \"success\"}")"
sleep "${LOCKGATE_TRY_WAIT:-5}"
ask GET "/repos/$repo/pulls/$number" >/dev/null
after=$(pick "it['updated_at']")
if [ "$before" = "$after" ]; then
    row "a status leaves updated_at alone" "yes"
else
    row "a status leaves updated_at alone" "no: $before, then $after"
fi

say "4. What does GitHub say of the signature of the commit?"
ask GET "/repos/$repo/pulls/$number/commits" >/dev/null
row "the commit is verified (signed: $sign)" "$(pick "it[0]['commit']['verification']['reason']")"
ask GET "/repos/$repo/pulls/$number" >/dev/null
row "mergeable_state" "$(pick "it['mergeable_state']")"

say "5. The merge queue: on which commit must a required check be reported?"
if $queue && [ "$has_queue" = True ]; then
    ask GET "/repos/$repo/pulls/$number" >/dev/null
    id=$(pick "it['node_id']")
    # shellcheck disable=SC2016  # GraphQL's own variables
    text='mutation($i: ID!, $h: GitObjectID) { enqueuePullRequest(input: {pullRequestId: $i, expectedHeadOid: $h}) { mergeQueueEntry { position state headCommit { oid } } } }'
    ask POST /graphql "{\"query\": \"$text\", \"variables\": {\"i\": \"$id\", \"h\": \"$head\"}}" >/dev/null
    entry=$(pick "it['data']['enqueuePullRequest']['mergeQueueEntry']['headCommit']['oid']")
    row "the entry's own commit" "${entry:-none: $(pick "it['errors'][0]['message']")}"
    if [ -n "$entry" ]; then
        row "POST statuses on it" \
            "$(ask POST "/repos/$repo/statuses/$entry" '{"state": "success", "context": "lockgate/try"}')"
        row "its tree is that of the pull request" "compare by hand: git fetch, then git diff $head $entry"
    fi
else
    row "the merge queue" "not tried: --merge-queue not given, or $base has none"
fi

say "What was found (copy it into docs/pull-requests.md):"
printf '| tried | answer |\n|---|---|\n'
cat "$work/table"
