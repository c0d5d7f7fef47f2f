"""What people read, for every face: one word for one thing, and nothing that moves a cursor."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from lockgate.core.lifecycle.advice import Trouble
from lockgate.core.model.agents import digest_in
from lockgate.core.model.facts import StoredEvent
from lockgate.core.model.task import Cause, Pinned, Status, Task
from lockgate.core.text.steering import asked_of
from lockgate.ports import Project
from lockgate.services.task.views import (
    Board,
    GateView,
    Overview,
    TaskView,
    Why,
    asks,
    large_change,
    may_ask,
    needs_human,
)

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
DEAD = "✗"
GIST = 160
SHORT = 12  # characters of a patch that tell it from others
FILES = 50


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


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last one is never padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def board_text(board: Board) -> str:
    if not board.rows:
        return 'no tasks yet; make one: lockgate task create BRANCH "summary"'
    head = ("", "ID", "STATUS", "PRIORITY", "SUMMARY")
    lines = [table([head, *(_board_cells(it.task, it.trouble) for it in board.rows)])]
    if board.after:
        lines.append(f"more: lockgate task list --after {board.after}")
    return "\n".join(lines)


def task_text(view: TaskView, where: str, more: Iterable[tuple[str, str]] = ()) -> str:
    task = view.task
    facts = [
        ("id", task.id),
        ("summary", one_line(task.summary)),
        *((("goal", one_line(task.goal)),) if task.goal != task.summary else ()),
        ("branch", one_line(task.branch)),
        *((("reverts", f"task {task.reverts.task}"),) if task.reverts else ()),
        ("status", _standing(task)),
        ("phase", type(task.phase).__name__ if task.phase else "none yet"),
        ("agent", agent_text(task.agent)),
        ("priority", str(task.priority)),
        ("depends on", ", ".join(task.depends_on) or "nothing"),
        ("counters", _counters(task)),
        ("file", where),
        *((("rules", _rules(task.pinned)),) if task.pinned else ()),
        *((("trouble", one_line(view.trouble)),) if view.trouble else ()),
        *((("directive", one_line(task.directive)),) if task.directive else ()),
        *(("word", f"{n}. {one_line(it.text)}") for n, it in enumerate(task.words, 1)),
        *((("question", one_line(asks(task))),) if asks(task) else ()),
        *((("last words", one_line(task.last_words)),) if task.last_words else ()),
        *(("gate", _judged(it)) for it in view.gates),
        *((name, one_line(", ".join(files))) for name, files in _first(task) if files),
        *((("change", _change(task)),) if task.patch else ()),
        *more,
        *(("feedback", it) for it in _feedback(task)),
        *(("session", f"{it.id} ({it.role}, {_when(it.started)})") for it in view.sessions),
        *(("to do", one_line(_effect(type(it.effect).__name__))) for it in view.pending),
    ]
    return table([(name + ":", value) for name, value in facts])


def _first(task: Task) -> tuple[tuple[str, Sequence[str]], ...]:
    """What a human sees first of a change: what a gate asks of, and what only steers."""
    asked = asked_of(task.protected, task.pinned)
    return ("protected", asked), ("steering", [it for it in task.protected if it not in asked])


def change_text(task: Task, files: Sequence[str]) -> str:
    """What a human says yes or no to: its files, what is protected first, and what was wrong."""
    large = f" ({large_change(task)})" if large_change(task) else ""
    lines = [f"change {task.patch[:SHORT]} of {task.id}, {len(files)} files{large}:"]
    mark = {it: f"  ({name})" for name, them in _first(task) for it in them}
    lines += [f"  {one_line(it)}{mark.get(it, '')}" for it in files[:FILES]]
    if len(files) > FILES:
        lines.append(f"  and {len(files) - FILES} more: lockgate diff {task.id}")
    return "\n".join([*lines, *(f"earlier: {it}" for it in _feedback(task))])


def status_text(pid: int | None, seen: Overview, troubles: Mapping[str, Trouble]) -> str:
    lines = [f"orchestrator: {f'process {pid}' if pid is not None else 'not running'}"]
    counts = [f"{count} {status}" for status, count in seen.counts.items() if count]
    lines.append(f"tasks: {', '.join(counts) or 'none'}")
    lines.append(f"agents at work: {len(seen.alive)}")
    lines += [
        f"  {it.id} ({it.role}, {agent_text(it.agent)}, {_when(it.started)})" for it in seen.alive
    ]
    lines += [_limited_text(*it) for it in seen.limited]
    lines += [f"cannot go on: {lane}: {one_line(it.why)}" for lane, it in troubles.items()]
    waiting = len(seen.humans) + len(seen.lanes) + len(seen.untrusted)
    lines.append(f"needs a human: {waiting or 'nothing'}")
    lines += untrusted_lines(seen.untrusted)
    lines += [f"  {MARKS[task.status]} {task.id}: {one_line(why)}" for task, why in seen.humans]
    lines += [f"  ! {lane}: {one_line(why)}" for lane, why in seen.lanes]
    return "\n".join(lines)


def _limited_text(agent: str, until: float, waiting: int) -> str:
    clock = datetime.fromtimestamp(until).astimezone().strftime("%H:%M")
    tasks = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
    return f"{one_line(agent)}: limited until {clock}, {tasks}"


def untrusted_lines(found: Iterable[tuple[Project, str]]) -> list[str]:
    return [f"  ✗ nothing of {one_line(it.name)} runs: {one_line(why)}" for it, why in found]


def question_text(task: Task) -> str:
    """What the agent asks, as it wrote it, and how to answer."""
    if task.status is not Status.CLARIFICATION:
        return f"{task.id} asks nothing now: it is {task.status}"
    asked = (f"  {line}".rstrip() for line in safe(asks(task)).splitlines())
    answer = f"  answer it: lockgate answer {task.id} -m TEXT"
    return "\n".join((f"{task.id} asks:", *asked, answer))


def yours_text(task: Task) -> str:
    """What a human who takes a task over must know to leave it, and to give it back."""
    return f"""\
{task.id} is yours: {one_line(task.goal)}
Its agent's own session opens in its workspace. Nothing is said to the agent before you do.
  leave, and let it run:  Ctrl-b d
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
{task.id} is {task.status}: what lies in its workspace is judged like the work of an agent.
  follow it:  lockgate task show {task.id}
Where a gate fails, its agent goes on with what the gate found. Take it over again at any time."""


def words_text(task: Task) -> str:
    """The words that its agent has yet to hear, each with its place in the queue."""
    if not task.words:
        return f"no word waits for the agent of {task.id}"
    lines = [f"{n}. {one_line(it.text)}  ({_when(it.said)})" for n, it in enumerate(task.words, 1)]
    return "\n".join((f"the agent of {task.id} has yet to hear:", *lines, _hearing(task)))


def said_text(task: Task, *, at_once: bool) -> str:
    if at_once:
        return f"the agent of {task.id} is interrupted and goes on with your word"
    return f"word {len(task.words)} for the agent of {task.id}; {_hearing(task)}"


def _hearing(task: Task) -> str:
    if task.status is Status.WORKING and not task.dead:
        return "it is heard when the agent next stops, or hands in"
    return f"no agent works on it now ({task.status}); the next one hears it as it begins"


def why_text(seen: Why) -> str:
    task, next = seen.task, seen.advice
    lines = [f"{task.id} is {_standing(task)}."]
    lines += [f"It is judged by {_rules(task.pinned)}"] if task.pinned else []
    if asked := needs_human(task):
        lines.append(f"It needs a human: {one_line(asked)}")
    lines.append(
        f"Next: {one_line(next.why)}{f': {one_line(next.command)}' if next.command else ''}"
    )
    for row in seen.moves:
        asked_by = " or ".join(may_ask(row.rule))
        state = "possible" if row.missing is None else f"not yet: {one_line(row.missing)}"
        lines.append(f"→ {row.rule.target} ({asked_by}): {state}")
        lines += [f"    asks: {one_line(ask)}" for ask in row.asks]
        if row.missing and row.fix:
            lines.append(f"    to do: {one_line(row.fix)}")
    if task.status in {Status.DONE, Status.CANCELLED}:
        lines.append("It has ended; no move leads on from here.")
    return "\n".join(lines)


def event_text(event: StoredEvent) -> str:
    told = ", ".join(f"{key}={one_line(str(value))}" for key, value in event.data.items() if value)
    return f"{event.seq:>6}  {_when(event.time)}  {event.task}  {event.type}  {told}".rstrip()


def event_story(event: StoredEvent) -> str | None:
    """What happened to the task, in plain words; None for what another event tells better."""
    data = {key: one_line(str(it)) for key, it in event.data.items()}
    match event.type:
        case "status.changed":
            return _moved(data["from"], data["to"], data["reason"])
        case "GateCompleted":
            return _gate(data["gate_name"], data["result"], data.get("why", ""))
        case "HumanReviewCompleted":
            said = "a human said yes" if event.data["approved"] else "a human said no"
            return f"{said}: {data['comment']}" if data["comment"] else said
        case "GateFailedRetrying":
            return f"back to its agent, which is told: {_gist(event.data['feedback'])}"
        case type:
            told = _STORIES.get(type)
            return told.format_map(data) if told else None


_STORIES = {
    "task.created": "created: {summary}",
    "task.imported": "imported: {summary}",
    "goal.changed": "a human set the goal: {goal}",
    "session.started": "a {role} starts",
    "session.interrupted": "the machine went down under its agent, which is taken up again",
    "usage.limited": "its agent's plan is used up for now; it goes on by itself",
    "agent.crashed": "{reason} (time {crash_count} in this status)",
    "question.asked": "its question: {question}",
    "question.answered": "a human answers: {answer}",
    "context.changed": "a human changed its Context",
    "word.said": "a human says to its agent: {text}",
    "word.changed": "a human changed a word for its agent to: {text}",
    "words.heard": "its agent has heard the words of its human",
    "agent.asked": "its agent stopped without handing in; it is asked to hand in or to ask",
    "GateEvaluationStarted": "handed on; gates judge iteration {iteration} on a clean checkout",
    "change.mended": "its commits are made again as one by Lockgate: {why}",
    "review.submitted": "gate {gate}: its {dimension} reviewer has handed in",
    "human.commented": "a human says: {comment}",
    "AllGatesPassed": "all gates passed; its change waits to land",
    "GateFailedMaxIterations": "failed {iterations} times, which is the limit",
    "publish.skipped": "branch {branch} in your repository was left as it is: {why}",
    "landing.approved": "a human lets it land",
    "landing.held": "is kept from landing: {why}",
    "change.landed": "the target is at {commit:.12} now: exactly what was tested",
    "landing.unjudged": "landed as {commit:.12} unjudged: {why}",
    "revert.made": "reverts task {reverts}, which landed as {landed:.12}",
    "step.passed": "step {nodeId} passed",
    "GATE_FAILED": "step {nodeId} failed ({reason}), {consecutiveFailures} in a row",
    "USER_ESCALATION": "{message}: this needs a human; a fresh worker goes on",
    "escalation": "failed {attemptCount} times in its life; it waits for a human",
    "task.resumed": "a human resumed it {directive}",
    "task.taken-over": "a human took it over",
    "task.handed-back": "the human handed it back",
    "task.repinned": "a human gave it the rules that its base has now",
    "agent.respawned": "a human asked for a new {role}",
    "task.troubled": "cannot go on, and needs a human: {why}",
    "task.recovered": "goes on: what had failed is done",
    "artifact.tampered": "somebody edited TASK.md's frontmatter; it was put back",
    "move.forced": "a human skipped what was missing ({missing}): {reason}",
}
_CAUSES = {
    Cause.CRASH_THRESHOLD: "its agents stopped without handing in",
    Cause.UNJUDGED: "no gate judges it",
}
_MOVES = {
    Status.CLARIFICATION: "asks a question",
    Status.STUCK: "is stuck and waits for a human",
    Status.DONE: "is done: its change is in the target branch",
    Status.CANCELLED: "is cancelled",
}
_RESULTS = {"broken": "could not judge", "waiting": "waits for a human"}


def _moved(source: str, target: str, reason: str) -> str | None:
    match Status[source], Status[target]:
        case Status.PENDING, Status.WORKING:
            return "started, in a clone of its own"
        case Status.CLARIFICATION | Status.STUCK | Status.REVIEWING, Status.WORKING:
            return f"goes on: {reason}" if reason else "goes on"
        case _, status:
            told = _MOVES.get(status)
            return f"{told}: {reason}" if told and reason else told


def _gate(name: str, result: str, why: str) -> str:
    told = f"gate {name} {_RESULTS.get(result, result)}"
    return f"{told}: {why}" if result in _RESULTS and why else told


def _gist(feedback: object) -> str:
    """The line of the first finding that says most: its last with an error, else its last."""
    found = cast("Mapping[str, Sequence[Mapping[str, str]]]", feedback)["findings"]  # as stored
    lines = [one_line(it) for it in found[0]["issue"].splitlines() if it.strip()] if found else []
    telling = [it for it in lines if "Error" in it or "error:" in it] or lines or ["it failed"]
    return telling[-1][:GIST]


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
    return f"{task.id} is {_standing(task)}"


def _board_cells(task: Task, trouble: str | None) -> tuple[str, ...]:
    mark = DEAD if task.dead else MARKS[task.status]
    note = f"  [broken: {one_line(trouble)}]" if trouble else ""
    note += f"  [gate {one_line(_waiting(task))} waits for a human]" if _waiting(task) else ""
    note += f"  [yours since {_when(task.taken_at)}]" if task.taken_over else ""
    note += f"  [asks: {one_line(asks(task))[:GIST]}]" if asks(task) else ""
    note += f"  [needs a human: {_attention(task)}]" if _attention(task) else ""
    note += "".join(f"  [{it}]" for it in (queued(task), large_change(task)) if it)
    return mark, task.id, str(task.status), str(task.priority), one_line(task.summary) + note


def _change(task: Task) -> str:
    large = large_change(task)
    return f"{task.patch[:SHORT]} ({large})" if large else task.patch[:SHORT]


def queued(task: Task) -> str:
    """In one word where it stands in the queue, as far as its own row says."""
    if task.status is not Status.REVIEWING:
        return ""
    return "landing" if task.landed else "held" if task.held else "queued" if task.to_land else ""


def _standing(task: Task) -> str:
    cause = f" ({_CAUSES.get(task.cause, task.cause)})" if task.cause else ""
    waits = f", gate {one_line(_waiting(task))} waits for a human" if _waiting(task) else ""
    human = f", needs a human: {_attention(task)}" if _attention(task) else ""
    return f"{task.status}{cause}{waits}" + (", its session is dead" if task.dead else "") + human


def _attention(task: Task) -> str:
    """What a human should know though the status does not say it."""
    return one_line(task.troubled or task.escalated)[:GIST]


def _waiting(task: Task) -> str:
    return task.waiting if task.status is Status.AGENT_REVIEW else ""


def _judged(seen: GateView) -> str:
    why = f" ({one_line(seen.why)})" if seen.why else ""
    return f"{one_line(seen.gate)}: {one_line(seen.result)}{why}"


def _feedback(task: Task) -> list[str]:
    """What gates and humans had to say of earlier iterations."""
    told = [(it.iteration, it.feedback) for it in task.history if it.feedback]
    return [
        f"iteration {iteration}, gate {one_line(it.gate_name)}: {one_line(it.summary)[:GIST]}"
        for iteration, it in told
    ]


def _rules(rules: Pinned) -> str:
    told = f"configuration {rules.config_hash[:SHORT]} of {one_line(rules.base)}"
    return f"{told} at {rules.base_commit[:SHORT]}"


def _counters(task: Task) -> str:
    return (
        f"iteration {task.iteration}, review round {task.review_round},"
        f" crashes {task.crash_count}, failed attempts {task.failed_attempts}"
    )


def _effect(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
