"""The variables of build servers: which one runs us, which branch a change is to be merged into."""

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

# Each is set by one build server in all its builds. `CI` alone is not: people set it by hand.
SERVERS = (
    "APPVEYOR",
    "BITBUCKET_BUILD_NUMBER",
    "BITRISE_IO",
    "BUILDKITE",
    "CIRCLECI",
    "CIRRUS_CI",
    "CODEBUILD_BUILD_ID",
    "DRONE",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "JENKINS_URL",
    "PROW_JOB_ID",
    "SEMAPHORE",
    "TEAMCITY_VERSION",
    "TF_BUILD",
    "TRAVIS",
)
PLAIN = frozenset({"", "0", "1", "false", "true"})  # values of `CI` that name no server

# These name the branch itself where it is built without a pull request: the second variable tells.
ONLY_WITH = {
    "DRONE_TARGET_BRANCH": "DRONE_PULL_REQUEST",
    "TRAVIS_BRANCH": "TRAVIS_PULL_REQUEST",
    "APPVEYOR_REPO_BRANCH": "APPVEYOR_PULL_REQUEST_NUMBER",
}
