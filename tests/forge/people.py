"""The people of a story: they label, review, push and close, as on GitHub's pages."""

from collections import deque
from collections.abc import Mapping

from tests.forge.state import Comment, Github, Issue, Outcome, Pull, Review


class People:
    """What people do to the repository by hand; each method names who does it."""

    def __init__(self, hub: Github) -> None:
        self.hub = hub

    # --- issues ---

    def writes_issue(self, who: str, title: str, body: str = "", *, label: str = "") -> Issue:
        issue = self.hub.new_issue(title, body, who)
        if label:
            self.hub.label(issue, label, who)
        return issue

    def labels(self, who: str, number: int, label: str = "lockgate") -> None:
        self.hub.label(self.hub.issues[number], label, who)

    def unlabels(self, who: str, number: int, label: str = "lockgate") -> None:
        self.hub.unlabel(self.hub.issues[number], label, who)

    def edits(
        self, who: str, number: int, *, title: str | None = None, body: str | None = None
    ) -> None:
        self.hub.edit(self.hub.issues[number], title=title, body=body, by=who)

    def says(self, who: str, number: int, words: str) -> Comment:
        return self.hub.say(self.hub.issues[number], words, who)

    def closes(self, who: str, number: int) -> None:
        self.hub.close(self.hub.issues[number], who)

    def reopens(self, who: str, number: int) -> None:
        self.hub.reopen(self.hub.issues[number], who)

    # --- reviews ---

    def approves(self, who: str, number: int, words: str = "") -> Review:
        return self._reviews(who, number, "APPROVED", words)

    def requests_changes(
        self, who: str, number: int, words: str, *lines: tuple[str, int, str]
    ) -> Review:
        """`lines`: path, line, words of each comment at a line."""
        return self._reviews(who, number, "CHANGES_REQUESTED", words, *lines)

    def comments(self, who: str, number: int, words: str, *lines: tuple[str, int, str]) -> Review:
        return self._reviews(who, number, "COMMENTED", words, *lines)

    def dismisses(self, who: str, number: int, whose: str) -> None:
        for review in self.hub.pulls[number].reviews:
            if review.author == whose:
                review.state = "DISMISSED"
        self.hub.touch(number)

    def resolves(self, number: int) -> None:
        for it in self.hub.pulls[number].comments:
            it.resolved = True
        self.hub.touch(number)

    def _reviews(
        self, who: str, number: int, state: str, words: str, *lines: tuple[str, int, str]
    ) -> Review:
        hub, pull = self.hub, self._settled(number)
        review = Review(hub.new_id(), who, state, words, pull.sha, hub.now())
        pull.reviews.append(review)
        for path, line, text in lines:
            pull.comments.append(self._at_line(pull, review, path, line, text))
        hub.touch(number)
        hub.hint("pull_request_review", "submitted", number)
        return review

    def _at_line(self, pull: Pull, review: Review, path: str, line: int, text: str) -> Comment:
        at = self.hub.now()
        return Comment(
            id=self.hub.new_id(),
            author=review.author,
            body=text,
            created_at=at,
            updated_at=at,
            path=path,
            line=line,
            original_line=line,
            hunk=f"@@ -{line},1 +{line},1 @@\n+a line",
            commit=pull.sha,
            review=review.id,
        )

    # --- pull requests ---

    def opens(self, who: str, branch: str, title: str = "Do it") -> Pull:
        sha = self.hub.bare.tip(branch)
        pull = Pull(self.hub.new_issue(title, "", who), branch, "main", str(sha))
        self.hub.pulls[pull.number] = pull
        self.hub.start_ci(pull.sha)
        self.hub.hint("pull_request", "opened", pull.number)
        return pull

    def retargets(self, who: str, number: int, base: str) -> None:
        if self.hub.bare.tip(base) is None:
            self.hub.bare.move(base, str(self.hub.bare.tip("main")))
        self.hub.pulls[number].base = base
        self.hub.touch(number)
        self.hub.hint("pull_request", "edited", number)

    def drafts(self, who: str, number: int, *, draft: bool = True) -> None:
        self.hub.pulls[number].draft = draft
        self.hub.touch(number)

    def merges(self, who: str, number: int, method: str = "squash") -> str:
        return self.hub.merge(self._settled(number), method, who)

    def pushes(
        self, who: str, branch: str, files: Mapping[str, str], message: str = "by hand"
    ) -> str:
        """A commit on top of a branch, also of the target: an administrator may."""
        tip = self.hub.bare.tip(branch)
        parents = () if tip is None else (tip,)
        made = self.hub.bare.commit(files, parents=parents, message=message, author=who)
        self.hub.bare.move(branch, made)
        self.hub.settle()
        return made

    def rewrites(self, who: str, branch: str, files: Mapping[str, str]) -> str:
        """The branch's history is replaced: what was on it is no longer below its head."""
        base = str(self.hub.bare.tip("main"))
        made = self.hub.bare.commit(files, parents=(base,), message="rewritten", author=who)
        self.hub.bare.move(branch, made)
        self.hub.settle()
        return made

    def deletes_branch(self, who: str, branch: str) -> None:
        self.hub.bare.delete(branch)
        self.hub.settle()

    # --- CI and the merge queue ---

    def ci(self, name: str, *outcomes: Outcome) -> None:
        """What CI makes of the next heads, one outcome each; the last one repeats."""
        self.hub.ci[name] = deque(outcomes)

    def ci_says(self, number: int, name: str, outcome: Outcome) -> None:
        """A check of the head of a pull request, now."""
        self.hub.set_check(self._settled(number).sha, name, outcome)

    def queue_merges(self) -> str:
        """GitHub's merge queue lands its first entry."""
        pull = self.hub.pulls[self.hub.queue.pop(0)]
        return self.hub.merge(pull, "squash", "github-merge-queue[bot]")

    def queue_evicts(self, number: int) -> None:
        self.hub.queue.remove(number)
        self.hub.pulls[number].place = None
        self.hub.touch(number)

    def _settled(self, number: int) -> Pull:
        self.hub.settle()
        return self.hub.pulls[number]
