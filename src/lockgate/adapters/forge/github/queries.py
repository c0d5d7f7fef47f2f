"""The GraphQL operations: only what REST lacks."""

VIEWER = """
query { viewer { login } }
"""

# Places in the merge queue, and which threads are open.
PULL = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      mergeQueueEntry { position }
      reviewThreads(first: 100) { nodes { isResolved } }
    }
  }
}
"""

# When the text of an issue was changed last.
ISSUE = """
query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) { lastEditedAt }
  }
}
"""

ENQUEUE = """
mutation ($id: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) {
    mergeQueueEntry { position }
  }
}
"""

AUTO_MERGE = """
mutation ($id: ID!, $head: GitObjectID!) {
  enablePullRequestAutoMerge(input: {pullRequestId: $id, expectedHeadOid: $head}) {
    pullRequest { number }
  }
}
"""
