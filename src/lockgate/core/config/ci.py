"""The variables in which build servers name the branch that a change is to be merged into."""

# Imports nothing: the short way of a command looks at these names before anything is loaded.
TARGETS = (
    "GITHUB_BASE_REF",  # GitHub, Gitea and Forgejo Actions
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",  # GitLab
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "CHANGE_TARGET",  # Jenkins
    "SYSTEM_PULLREQUEST_TARGETBRANCH",  # Azure Pipelines
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "CI_COMMIT_TARGET_BRANCH",  # Woodpecker
    "CODEBUILD_WEBHOOK_BASE_REF",
    "CIRRUS_BASE_BRANCH",
    "BITRISEIO_GIT_BRANCH_DEST",
    "PULL_BASE_REF",  # Prow
    "DRONE_TARGET_BRANCH",
    "TRAVIS_BRANCH",
    "APPVEYOR_REPO_BRANCH",
)

# These name the branch itself where it is built without a pull request: the second variable tells.
ONLY_WITH = {
    "DRONE_TARGET_BRANCH": "DRONE_PULL_REQUEST",
    "TRAVIS_BRANCH": "TRAVIS_PULL_REQUEST",
    "APPVEYOR_REPO_BRANCH": "APPVEYOR_PULL_REQUEST_NUMBER",
}
