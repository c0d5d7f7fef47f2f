"""What people read, for every face: one word for one thing, and nothing that moves a cursor."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from lockgate.core.lifecycle.needs import (
    CAUSES,
    NeedKind,
    asks,
    in_one_line,
    large_change,
    need_of,
)
from lockgate.core.model.agents import digest_in
from lockgate.core.model.facts import StoredEvent, json_facts
from lockgate.core.model.task import Pinned, Status, Task
from lockgate.core.text.steering import asked_of
from lockgate.services.task.page import TaskPage
from lockgate.services.task.rows import RowSize
from lockgate.services.task.views import GateView, Why, may_ask

# Control characters but newline and tab, bidirectional overrides, zero-width characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
MARKS = {
    Status.PENDING: "·",
    Status.CLARIFICATION: "?",
    Status.WORKING: "▸",
    Status.AGENT_REVIEW: "◇",
    Status.REVIEWING: "◆",
    Status.STUCK: "!",
    Status.PAUSED_FOR_INTERVENTION: "‖",
    Status.DONE: "✓",
    Status.CANCELLED: "–",
}
NOT_RUNNING = "✗"
# What people call a status; its own name is for `--json`, events and `task update`.
WORDS = {
    Status.PENDING: "to do",
    Status.CLARIFICATION: "asks you",
    Status.WORKING: "working",
    Status.AGENT_REVIEW: "checking",
    Status.REVIEWING: "ready to land",
    Status.STUCK: "stuck",
    Status.PAUSED_FOR_INTERVENTION: "paused",
    Status.DONE: "landed",
    Status.CANCELLED: "cancelled",
}
GIST = 160
SHORT = 12  # characters of a patch that tell it from others
FILES = 50
STAT = 10  # files that a diffstat names


def safe(text: str) -> str:
    return _UNSAFE.sub("\ufffd", text)


def escaped(line: str) -> str:
    """The same JSON, with nothing in it that moves a cursor."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def one_line(text: str) -> str:
    return " ".join(safe(text).split())


def agent_text(agent: str) -> str:
    """Its name; of one that is a file, with as much of the digest as tells it from others."""
    digest = digest_in(agent)
    return f"{agent.partition('@')[0]} (copy {digest[:SHORT]})" if digest else one_line(agent)


def error_text(what: str, why: str, fix: str) -> str:
    return f"{one_line(what)}: {safe(why).strip()}\n  {one_line(fix)}"


def word_of(task: Task) -> str:
    """What people call the state of a task."""
    if task.taken_over:
        return "yours"
    if task.status is Status.AGENT_REVIEW and task.waiting:
        return "needs you"
    if task.status is Status.REVIEWING and task.held:
        return "held"
    if task.status is Status.REVIEWING and (task.to_land or task.landed):
        return "landing"
    return WORDS[task.status]


def mark_of(task: Task) -> str:
    return NOT_RUNNING if task.dead else MARKS[task.status]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last one is never padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def task_text(seen: TaskPage, more: Iterable[tuple[str, str]] = ()) -> str:
    task, view = seen.task, seen.view
    facts = [
        ("id", task.id),
        ("summary", one_line(task.summary)),
        *((("goal", one_line(task.goal)),) if task.goal != task.summary else ()),
        ("branch", one_line(task.branch)),
        *((("reverts", f"task {task.reverts.task}"),) if task.reverts else ()),
        ("state", f"{word_of(task)}{_more(task)}"),
        ("phase", type(task.phase).__name__ if task.phase else "none yet"),
        ("agent", agent_text(task.agent)),
        *((("host", one_line(task.host)),) if task.host else ()),
        ("priority", str(task.priority)),
        ("depends on", ", ".join(task.depends_on) or "nothing"),
        ("counters", _counters(task)),
        *((("size", _size(seen.row.size)),) if task.candidate else ()),
        ("cost", _cost(task)),
        ("file", seen.file),
        *((("rules", _rules(task.pinned)),) if task.pinned else ()),
        *((("trouble", one_line(view.trouble)),) if view.trouble else ()),
        *((("directive", one_line(task.directive)),) if task.directive else ()),
        *(("word", f"{n}. {one_line(it.text)}") for n, it in enumerate(task.words, 1)),
        *((("question", one_line(asks(task))),) if asks(task) else ()),
        *((("last words", one_line(task.last_words)),) if task.last_words else ()),
        *(("gate", _judged(it)) for it in view.gates),
        *((name, one_line(", ".join(files))) for name, files in _first(task) if files),
        *((("change", _change(task)),) if task.patch else ()),
        *(("approval", approval_text(json_facts(it))) for it in task.approvals),
        *more,
        *(("feedback", it) for it in feedback(task)),
        *(("session", f"{it.id} ({it.role}, {_when(it.started)})") for it in view.sessions),
        *(("to do", one_line(_effect(type(it.effect).__name__))) for it in view.pending),
    ]
    return table([(name + ":", value) for name, value in facts])


def _first(task: Task) -> tuple[tuple[str, Sequence[str]], ...]:
    """What a human sees first of a change: what a gate asks of, and what only steers."""
    asked = asked_of(task.protected, task.pinned)
    return ("protected", asked), ("steering", [it for it in task.protected if it not in asked])


def diffstat(diff: str) -> list[str]:
    """The files of a diff with the lines that come and go, and what they come to."""
    files: list[tuple[str, int, int]] = []
    hunk = False
    for line in diff.splitlines():
        name, added, removed = files[-1] if files else ("", 0, 0)
        if line.startswith("diff --git "):
            files.append((line.rpartition(" b/")[2], 0, 0))
            hunk = False
        elif files and line.startswith("@@"):
            hunk = True
        elif hunk and line[:1] in "+-" and line:
            files[-1] = (name, added + (line[0] == "+"), removed + (line[0] == "-"))
    rows = [(one_line(name), f"+{plus}", f"-{minus}") for name, plus, minus in files]
    more = [f"and {len(rows) - STAT} more files"] if len(rows) > STAT else []
    plus, minus = sum(it[1] for it in files), sum(it[2] for it in files)
    total = [f"{counted(len(files), 'file')}, +{plus} -{minus}"] if files else []
    return [*table(rows[:STAT]).splitlines(), *more, *total]


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def change_text(task: Task, files: Sequence[str]) -> str:
    """What a human says yes or no to: its files, what is protected first, and what was wrong."""
    large = f" ({large_change(task)})" if large_change(task) else ""
    lines = [f"change {task.patch[:SHORT]} of {task.id}, {counted(len(files), 'file')}{large}:"]
    mark = {it: f"  ({name})" for name, them in _first(task) for it in them}
    lines += [f"  {one_line(it)}{mark.get(it, '')}" for it in files[:FILES]]
    if len(files) > FILES:
        lines.append(f"  and {len(files) - FILES} more: lockgate diff {task.id}")
    return "\n".join([*lines, *(f"earlier: {it}" for it in feedback(task))])


def question_text(task: Task) -> str:
    """What the agent asks, as it wrote it, and how to answer."""
    if task.status is not Status.CLARIFICATION:
        return f"{task.id} asks nothing now: it is {word_of(task)}"
    asked = (f"  {line}".rstrip() for line in safe(asks(task)).splitlines())
    answer = f"  answer it: lockgate answer {task.id} -m TEXT"
    return "\n".join((f"{task.id} asks:", *asked, answer))


def question_facts(task: Task) -> dict[str, object]:
    return {"task": task.id, "status": task.status, "question": asks(task)}


def yours_text(task: Task) -> str:
    """What a human who takes a task over must know to leave it, and to give it back."""
    return f"""\
{task.id} is yours: {one_line(task.goal)}
Its agent's own session opens in its workspace; the agent waits until you type something.
  leave, and let it run:  Ctrl-q
  come back:              lockgate task attach {task.id}
  give it back:           lockgate handback {task.id} -m "what was done\""""


def shell_text(task: Task, *, read_only: bool) -> str:
    """Where a human is who has opened a shell in a task's workspace, and how to leave it."""
    where = "without a sandbox" if task.pinned and not task.pinned.sandboxed else "in its sandbox"
    name = f"the workspace of {task.id}, branch {one_line(task.branch)}, {where}"
    leave = "  leave it:      exit, or Ctrl-d"
    if read_only:
        return f"You are in {name}. You cannot change anything in it.\n{leave}"
    return f"""\
You are in {name}. The task is yours; no agent is started.
{leave}
  come back:     lockgate shell {task.id}
  give it back:  lockgate handback {task.id} -m "what was done\""""


def handed_back_text(task: Task) -> str:
    return f"""\
{task.id} is {word_of(task)}: its gates check what is in the workspace, like an agent's work.
  follow it:  lockgate task show {task.id}
If a gate fails, the agent gets the findings and continues. You can take the task over again."""


def words_text(task: Task) -> str:
    """The words that its agent has yet to hear, each with its place in the queue."""
    if not task.words:
        return f"no message waits for the agent of {task.id}"
    lines = [f"{n}. {one_line(it.text)}  ({_when(it.said)})" for n, it in enumerate(task.words, 1)]
    return "\n".join(
        (f"the agent of {task.id} has not read these messages yet:", *lines, _hearing(task))
    )


def said_text(task: Task, *, at_once: bool) -> str:
    if at_once:
        return f"the agent of {task.id} is interrupted and continues with your message"
    return f"message {len(task.words)} for the agent of {task.id}; {_hearing(task)}"


def _hearing(task: Task) -> str:
    if task.status is Status.WORKING and not task.dead:
        return "the agent reads it when it next stops or hands in"
    return f"no agent works on it now ({word_of(task)}); the next one reads it when it starts"


def why_text(seen: Why) -> str:
    task, next = seen.task, seen.advice
    need = seen.need if seen.need and seen.need.kind is not NeedKind.YOURS else None
    lines = [f"{state_text(task, needs=not need)}."]
    if need:
        lines.append(f"It needs you: {one_line(in_one_line(need))}")
    lines.append(
        f"Next: {one_line(next.why)}{f': {one_line(next.command)}' if next.command else ''}"
    )
    lines += [f"Moves, by lockgate task update {task.id} --status STATUS:"] if seen.moves else []
    for row in seen.moves:
        asked_by = " or ".join(may_ask(row.rule))
        state = "possible now" if row.missing is None else f"not yet: {one_line(row.missing)}"
        lines.append(f"→ {row.rule.target} ({asked_by}): {state}")
        lines += [f"    needs: {one_line(ask)}" for ask in row.asks]
        if row.missing and row.fix:
            lines.append(f"    fix: {one_line(row.fix)}")
    if task.status in {Status.DONE, Status.CANCELLED}:
        lines.append("It has ended, and cannot be moved.")
    lines += [f"Rules: {_rules(task.pinned)}"] if task.pinned else []
    return "\n".join(lines)


def event_text(event: StoredEvent) -> str:
    told = ", ".join(f"{key}={one_line(str(value))}" for key, value in event.data.items() if value)
    return f"{event.seq:>6}  {_when(event.time)}  {event.task}  {event.type}  {told}".rstrip()


def event_story(event: StoredEvent) -> str | None:
    """What happened to the task, in plain words; None for what another event tells better."""
    data = {key: one_line(str(it)) for key, it in event.data.items()}
    data["who"] = data.get("by") or "a human"
    match event.type:
        case "status.changed":
            return _moved(data["from"], data["to"], data["reason"])
        case "GateCompleted":
            return _gate(data["gate_name"], data["result"], data.get("why", ""))
        case "HumanReviewCompleted":
            said = f"{data['who']} said {'yes' if event.data['approved'] else 'no'}"
            return f"{said}: {data['comment']}" if data["comment"] else said
        case "usage.limited":
            skipped = data.get("skipped", "")
            more = f"; its fallback is skipped, not installed: {skipped}" if skipped else ""
            return f"the agent hit its usage limit{more}"
        case "GateFailedRetrying":
            return f"back to its agent with what gate {data['gate_name']} found"
        case type:
            told = _STORIES.get(type)
            return told.format_map(data) if told else None


_STORIES = {
    "task.created": "created: {summary}",
    "task.imported": "imported: {summary}",
    "goal.changed": "{who} set the goal: {goal}",
    "session.started": "a {role} starts",
    "session.interrupted": "the machine stopped while its agent worked; the agent continues",
    "usage.held": "all its agents hit their usage limits; to go on: lockgate task respawn",
    "agent.replaced": "{agent} continues as its {role}: {before} hit its usage limit",
    "agent.crashed": "{reason} (time {crash_count} in this state)",
    "question.asked": "the agent asks: {question}",
    "question.answered": "{who} answered: {answer}",
    "context.changed": "{who} changed its Context",
    "word.said": "message to its agent: {text}",
    "word.changed": "a message to its agent was changed: {text}",
    "words.heard": "its agent has read your messages",
    "agent.asked": "its agent stopped without handing in; Lockgate asks it to hand in or to ask",
    "GateEvaluationStarted": "handed in; the gates check try {iteration} on a clean checkout",
    "change.mended": "Lockgate made its commits again as one: {why}",
    "review.submitted": "gate {gate}: the {dimension} reviewer has handed in",
    "human.commented": "{who} comments: {comment}",
    "AllGatesPassed": "all gates passed; ready to land",
    "GateFailedMaxIterations": "failed {iterations} times, which is the limit",
    "publish.skipped": "branch {branch} in your repository was not updated: {why}",
    "landing.approved": "{who} approved it for landing",
    "landing.held": "held back from landing: {why}",
    "change.landed": "the target branch is now at {commit:.12}, the commit that was tested",
    "landing.unjudged": "landed as {commit:.12} unjudged: {why}",
    "revert.made": "reverts task {reverts}, which landed as {landed:.12}",
    "pull.changed": "pull request #{number}: {what}",
    "step.passed": "step {nodeId} passed",
    "GATE_FAILED": "step {nodeId} failed ({reason}), {consecutiveFailures} in a row",
    "USER_ESCALATION": "{message}: this needs you; a fresh agent continues",
    "escalation": "failed {attemptCount} times in total; it is paused and needs you",
    "task.resumed": "{who} resumed it {directive}",
    "task.taken-over": "{who} took it over",
    "task.handed-back": "{who} handed it back",
    "task.repinned": "{who} gave it the rules that its base branch has now",
    "agent.respawned": "{who} asked for a new {role}",
    "dependency.lost": "it waits for a task that will not be done by itself: {why}",
    "dependency.back": "the tasks that it waits for can be done again",
    "dependency.dropped": "it does not wait for {needs} any more",
    "task.troubled": "Lockgate cannot continue it and needs you: {why}",
    "task.recovered": "continues: what failed before works now",
    "artifact.tampered": "TASK.md's frontmatter was edited; Lockgate restored it",
    "move.forced": "{who} skipped what was missing ({missing}): {reason}",
}
_MOVES = {
    Status.CLARIFICATION: "has a question for you",
    Status.STUCK: "is stuck and needs you",
    Status.DONE: "has landed",
    Status.CANCELLED: "is cancelled",
}
_RESULTS = {"broken": "could not judge", "waiting": "waits for you", "failed": "failed"}


def _moved(source: str, target: str, reason: str) -> str | None:
    match Status[source], Status[target]:
        case Status.PENDING, Status.WORKING:
            return "started, in a clone of its own"
        case Status.CLARIFICATION | Status.STUCK | Status.REVIEWING, Status.WORKING:
            return f"continues: {reason}" if reason else "continues"
        case _, Status.DONE if reason.startswith("landed"):
            return f"has {reason}"
        case _, status:
            told = _MOVES.get(status)
            return f"{told}: {reason}" if told and reason else told


def _gate(name: str, result: str, why: str) -> str:
    told = f"gate {name} {_RESULTS.get(result, result)}"
    return f"{told}: {why}" if result in _RESULTS and why else told


def event_facts(event: StoredEvent) -> dict[str, object]:
    return {
        "seq": event.seq,
        "time": event.time,
        "task": event.task,
        "type": event.type,
        "prev": event.prev,
        "data": dict(event.data),
    }


def moved_text(task: Task) -> str:
    """Where a move brought the task, with the status's own name, as `task update` takes it."""
    return f"{task.id} is {task.status}{_more(task)}"


def state_text(task: Task, *, needs: bool = True) -> str:
    """What the task is doing now, in words that people know.

    Without `needs` it does not say what the task needs, for a text that says it beside this.
    """
    more = _more(task, needs=needs)
    return f"{task.id} {_VERBS.get(word_of(task), 'is ')}{word_of(task)}{more}"


def next_lines(task: Task) -> list[str]:
    """What the task is doing now, and the question that comes next where one waits for you."""
    need = need_of(task)
    lines = [state_text(task)]
    if word_of(task) == "landing":
        lines = [f"{task.id} is approved; it lands once it is tested on the target branch"]
        lines += [f"  follow it: lockgate events {task.id} --follow"]
    return lines + [f"  {it.verb}: {it.command}" for it in (need.actions if need else ())]


_VERBS = {"needs you": "", "asks you": "", "landed": "has "}


def _change(task: Task) -> str:
    large = large_change(task)
    return f"{task.patch[:SHORT]} ({large})" if large else task.patch[:SHORT]


def _more(task: Task, *, needs: bool = True) -> str:
    cause = f" ({CAUSES[task.cause]})" if task.cause else ""
    waits = f", gate {one_line(_waiting(task))} waits for you" if _waiting(task) else ""
    human = f", needs you: {_attention(task)}" if needs and _attention(task) else ""
    dead = ", its agent is not running" if task.dead else ""
    return f"{cause}{waits}{dead}{human}"


def _attention(task: Task) -> str:
    """What a human should know though the status does not say it."""
    return one_line(task.troubled or task.escalated)[:GIST]


def _waiting(task: Task) -> str:
    return task.waiting if task.status is Status.AGENT_REVIEW else ""


def _judged(seen: GateView) -> str:
    why = f" ({one_line(seen.why)})" if seen.why else ""
    return f"{one_line(seen.gate)}: {one_line(seen.result)}{why}"


def feedback(task: Task) -> list[str]:
    """What gates and humans had to say of earlier iterations."""
    told = [(it.iteration, it.feedback) for it in task.history if it.feedback]
    return [
        f"iteration {iteration}, gate {one_line(it.gate_name)}: {one_line(it.summary)[:GIST]}"
        for iteration, it in told
    ]


def _rules(rules: Pinned) -> str:
    told = f"configuration {rules.config_hash[:SHORT]} of {one_line(rules.base)}"
    return f"{told} at {rules.base_commit[:SHORT]}"


def approval_text(yes: Mapping[str, object]) -> str:
    """Whose yes it is, to which gate, and what they said."""
    gate, by, how, said = (
        one_line(str(yes.get(it, ""))) for it in ("gate", "by", "how", "comment")
    )
    who = f"{by} ({how})" if by and how else by or "a human"
    return f"{gate}: {who} said yes" + (f", {said}" if said else "")


def _size(size: RowSize) -> str:
    told = (counted(size.commits, "commit"), counted(size.files, "file"))
    return f"{', '.join(told)}, +{size.added} -{size.removed} lines"


def _cost(task: Task) -> str:
    usd = f"${task.usd:.2f}" if task.usd else "not reported"
    return f"{usd}, {counted(task.tokens, 'token')}, {task.seconds / 60:.0f} minutes"


def _counters(task: Task) -> str:
    return (
        f"iteration {task.iteration}, review round {task.review_round},"
        f" crashes {task.crash_count}, failed attempts {task.failed_attempts}"
    )


def _effect(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
