"""Every statement both databases share, under its name; SQLite's `:name` is the spelling here."""

import re
from functools import cache

INSERT_TASK = """
INSERT INTO tasks (
    id, project, summary, goal, branch, agent, created, updated, rev, status, phase, priority,
    auto_start, depends_on, iteration, review_round, crash_count, failed_attempts, generation,
    since, dead, taken_over, not_before, exhausted, usd, tokens, seconds, candidate, patch,
    protected, passed, waiting, approvals, seats, steps_passed, step_failures, escalated, troubled,
    to_land, held, landed, cause, directive, history, spent, pinned, size,
    taken_at, question, words, last_words, reverts, instead_of, entered, asked, in_vain,
    host
) VALUES (
    :id, :project, :summary, :goal, :branch, :agent, :created, :updated, :rev, :status, :phase,
    :priority, :auto_start, :depends_on, :iteration, :review_round, :crash_count, :failed_attempts,
    :generation, :since, :dead, :taken_over, :not_before, :exhausted, :usd, :tokens, :seconds,
    :candidate, :patch, :protected, :passed, :waiting, :approvals, :seats, :steps_passed,
    :step_failures, :escalated, :troubled, :to_land, :held, :landed, :cause, :directive, :history,
    :spent, :pinned, :size, :taken_at, :question, :words, :last_words, :reverts,
    :instead_of, :entered, :asked, :in_vain, :host
) ON CONFLICT (id) DO NOTHING RETURNING id
"""

# The compare-and-set. A task's project and birthday never change, so they are not set.
MOVE_TASK = """
UPDATE tasks SET
    summary = :summary, goal = :goal, branch = :branch, agent = :agent, updated = :updated,
    rev = :rev, status = :status, phase = :phase, priority = :priority, auto_start = :auto_start,
    depends_on = :depends_on, iteration = :iteration, review_round = :review_round,
    crash_count = :crash_count, failed_attempts = :failed_attempts, generation = :generation,
    since = :since, dead = :dead, taken_over = :taken_over, not_before = :not_before,
    exhausted = :exhausted, usd = :usd, tokens = :tokens, seconds = :seconds,
    candidate = :candidate, patch = :patch, protected = :protected, passed = :passed,
    waiting = :waiting, approvals = :approvals, seats = :seats, steps_passed = :steps_passed,
    step_failures = :step_failures, escalated = :escalated, troubled = :troubled,
    to_land = :to_land, held = :held, landed = :landed, cause = :cause,
    directive = :directive, history = :history, spent = :spent, pinned = :pinned, size = :size,
    taken_at = :taken_at, question = :question, words = :words, last_words = :last_words,
    reverts = :reverts, instead_of = :instead_of, entered = :entered, asked = :asked,
    in_vain = :in_vain, host = :host
WHERE id = :id AND rev = :rev - 1 RETURNING id
"""

# Its sessions go with it.
DELETE_TASK = "DELETE FROM tasks WHERE id = :id AND rev = :rev - 1 RETURNING id"

TASK = "SELECT * FROM tasks WHERE id = :id"
TASKS_NAMED = "SELECT id FROM tasks WHERE id >= :prefix AND id < :end ORDER BY id LIMIT 3"

TASKS_ON_BRANCH = """
SELECT * FROM tasks WHERE project = :project AND branch = :branch ORDER BY created, id
"""

# A task's dependencies, beside `depends_on` so that they are found from both ends.
PUT_DEPENDENCY = """
INSERT INTO dependencies (task, needs) VALUES (:task, :needs) ON CONFLICT (task, needs) DO NOTHING
"""
DROP_DEPENDENCIES = "DELETE FROM dependencies WHERE task = :task"
_COUNT_NEEDS = """
UPDATE tasks SET
    blocked = (
        SELECT count(*) FROM dependencies AS d LEFT JOIN tasks AS n ON n.id = d.needs
        WHERE d.task = tasks.id AND (n.status IS NULL OR n.status <> 'DONE')
    ),
    lost = (
        SELECT count(*) FROM dependencies AS d LEFT JOIN tasks AS n ON n.id = d.needs
        WHERE d.task = tasks.id AND (
            n.status IS NULL OR n.status IN ('CANCELLED', 'STUCK', 'PAUSED_FOR_INTERVENTION')
        )
    )
"""
_NEEDED_BY = "(SELECT task FROM dependencies WHERE needs = :id)"
COUNT_NEEDS_OF = f"{_COUNT_NEEDS} WHERE id = :id"
COUNT_NEEDS_ON = f"{_COUNT_NEEDS} WHERE id IN {_NEEDED_BY}"

# What could start now. Agents that are limited stand in :without, each between two bars.
PROJECTS_READY = """
SELECT id FROM projects AS p WHERE (
    SELECT id FROM tasks WHERE project = p.id AND status = 'PENDING' AND auto_start = 1
    AND blocked = 0 ORDER BY priority, created, id LIMIT 1
) IS NOT NULL ORDER BY id
"""
READY = """
SELECT * FROM tasks
WHERE project = :project AND status = 'PENDING' AND auto_start = 1 AND blocked = 0
AND replace(:without, '|' || agent || '|', '') = :without
ORDER BY priority, created, id LIMIT :limit
"""
AT_WORK = """
SELECT count(*) AS n FROM tasks
WHERE project = :project AND status IN ('WORKING', 'AGENT_REVIEW') AND dead = 0
AND not_before <= :now
"""
IN_VAIN = "SELECT * FROM tasks WHERE lost > 0 OR in_vain <> '' ORDER BY id"
TO_LAND = """
SELECT project, count(*) AS n, sum(rev) AS revs, max(updated) AS updated
FROM tasks WHERE status = 'REVIEWING' GROUP BY project
"""

TASKS_TROUBLED = "SELECT * FROM tasks WHERE troubled <> '' ORDER BY created DESC, id DESC"

COUNTS = "SELECT status, n FROM task_counts"
COUNTS_OF = "SELECT status, n FROM task_counts WHERE project = :project"

# As the partial indexes have them, letter by letter: only then does a database use them.
LIVE = "status NOT IN ('DONE', 'CANCELLED')"
ENDED = """status NOT IN (
    'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK',
    'PAUSED_FOR_INTERVENTION'
)"""
NEEDING = """(
    status IN ('CLARIFICATION', 'REVIEWING', 'STUCK', 'PAUSED_FOR_INTERVENTION')
    OR troubled <> ''
    OR in_vain <> ''
    OR status IN ('WORKING', 'AGENT_REVIEW')
    AND (waiting <> '' OR escalated <> '' OR dead = 1 OR taken_over = 1)
)"""
OF_PROJECT, OF_STATUS, OF_AGENT = "project = :project", "status = :status", "agent = :agent"
WITH_TEXT = """(
    lower(id) LIKE :text ESCAPE '!' OR lower(branch) LIKE :text ESCAPE '!'
    OR lower(summary) LIKE :text ESCAPE '!'
)"""


def page_of(by: str, wanted: tuple[str, ...]) -> str:
    """The next tasks by `created` or `updated`; one walk along one index, whatever is wanted."""
    where = " AND ".join((*wanted, f"({by}, id) < (:{by}, :id)"))
    return f"SELECT * FROM tasks WHERE {where} ORDER BY {by} DESC, id DESC LIMIT :limit"  # noqa: S608


TASKS_NEEDING = "SELECT * FROM tasks WHERE " + NEEDING  # noqa: S608 - all of it is here
TASKS_NEEDING_OF = TASKS_NEEDING + " AND project = :project"
TASKS_DEPENDING = (
    "SELECT id, status, depends_on FROM tasks WHERE depends_on <> '[]' AND " + LIVE  # noqa: S608
)
STATUS_OF = "SELECT id, status FROM tasks WHERE id = :id"

HEAD = "SELECT seq, hash FROM log_head"
# Takes the next numbers and holds the row, so that writers append one after the other.
TAKE_NUMBERS = """
UPDATE log_head SET seq = seq + :count, turn = turn + 1 RETURNING seq, hash, turn
"""
# Read at every wake: how many turns were taken, and which programs may take more.
PULSE = "SELECT turn, seq, hash, readable_from FROM log_head, schema_facts"
IS_THERE = "SELECT 1 AS one FROM events WHERE seq = :seq AND hash = :hash"
MOVE_HEAD = "UPDATE log_head SET hash = :hash"

INSERT_EVENT = """
INSERT INTO events (seq, time, task, type, prev, hash, data)
VALUES (:seq, :time, :task, :type, :prev, :hash, :data)
"""
EVENTS = "SELECT * FROM events WHERE seq > :since ORDER BY seq LIMIT :limit"
EVENTS_OF_TASK = """
SELECT * FROM events WHERE task = :task AND seq > :since ORDER BY seq LIMIT :limit
"""

# A key is met again only where a deleted task's id is used again: then it is a new effect.
INSERT_EFFECT = """
INSERT INTO outbox (task, rev, n, kind, data, turn)
VALUES (:task, :rev, :n, :kind, :data, :turn)
ON CONFLICT (task, rev, n) DO UPDATE SET kind = :kind, data = :data, turn = :turn
"""
EFFECT_DONE = "DELETE FROM outbox WHERE task = :task AND rev = :rev AND n = :n"
EFFECTS = "SELECT * FROM outbox ORDER BY turn, task, rev, n LIMIT :limit"
EFFECTS_AFTER = """
SELECT outbox.*, coalesce(tasks.project, '') AS project
FROM outbox LEFT JOIN tasks ON tasks.id = outbox.task
WHERE (outbox.turn, outbox.task, outbox.rev, outbox.n) > (:turn, :task, :rev, :n)
ORDER BY outbox.turn, outbox.task, outbox.rev, outbox.n LIMIT :limit
"""
EFFECTS_OF_TASK = "SELECT * FROM outbox WHERE task = :task ORDER BY rev, n LIMIT :limit"
DROP_EFFECTS = "DELETE FROM outbox WHERE task = :task"

# Only a text that differs from the last one: a task moves more often than its text changes.
INSERT_BODY = """
INSERT INTO bodies (task, rev, text)
SELECT :task, :rev, :text WHERE NOT EXISTS (
    SELECT 1 FROM bodies WHERE task = :task AND text = :text
    AND rev = (SELECT max(rev) FROM bodies WHERE task = :task)
)
ON CONFLICT (task, rev) DO UPDATE SET text = excluded.text
"""
FORGET_BODIES = """
DELETE FROM bodies
WHERE task = :task AND rev < (SELECT max(rev) FROM bodies WHERE task = :task)
"""
KNOWN_BODY = "SELECT 1 AS one FROM bodies WHERE task = :task AND text = :text LIMIT 1"
BODY = "SELECT task, text FROM bodies WHERE task = :task ORDER BY rev DESC LIMIT 1"

INSERT_RESULT = """
INSERT INTO gate_results (task, rev, n, time, gate, result, data)
VALUES (:task, :rev, :n, :time, :gate, :result, :data)
ON CONFLICT (task, rev, n) DO UPDATE SET time = :time, gate = :gate, result = :result, data = :data
"""
RESULTS = """
SELECT * FROM gate_results WHERE task = :task AND rev > :since ORDER BY rev, n LIMIT :limit
"""

PUT_SESSION = """
INSERT INTO sessions (
    id, task, role, round, generation, token_hash, started, ended, directory, agent, native,
    interactive, usd, tokens, seat, asked, login, limited_until, host
) VALUES (
    :id, :task, :role, :round, :generation, :token_hash, :started, :ended, :directory, :agent,
    :native, :interactive, :usd, :tokens, :seat, :asked, :login, :limited_until, :host
) ON CONFLICT (id) DO UPDATE SET
    task = :task, role = :role, round = :round, generation = :generation,
    token_hash = :token_hash, started = :started, ended = :ended, directory = :directory,
    agent = :agent, native = :native, interactive = :interactive, usd = :usd, tokens = :tokens,
    seat = :seat, asked = :asked, login = :login, limited_until = :limited_until,
    host = :host
"""
# What it has cost stays, also when its task is deleted.
PUT_SPENDING = """
INSERT INTO spending (session, project, ended, usd) VALUES (:session, :project, :ended, :usd)
ON CONFLICT (session) DO UPDATE SET ended = :ended, usd = :usd
"""
SESSION = "SELECT * FROM sessions WHERE id = :id"
SESSIONS_ALIVE = "SELECT * FROM sessions WHERE ended IS NULL ORDER BY id"
IDS_ALIVE = "SELECT id FROM sessions WHERE ended IS NULL ORDER BY id"
SESSIONS_ALIVE_IN = """
SELECT count(*) AS n FROM sessions WHERE ended IS NULL AND task <> :task
AND (SELECT project FROM tasks WHERE id = sessions.task) = :project
"""
SESSIONS_LIMITED = """
SELECT * FROM sessions WHERE limited_until > 0 AND limited_until > :now ORDER BY limited_until, id
"""
SESSION_BY_TOKEN = "SELECT * FROM sessions WHERE token_hash = :token_hash"
SESSIONS_OF_TASK = "SELECT * FROM sessions WHERE task = :task ORDER BY started, id"

CANDIDATES = "SELECT * FROM train_candidates WHERE target = :target ORDER BY onto, changes"
PUT_CANDIDATE = """
INSERT INTO train_candidates (target, onto, changes, outcome)
VALUES (:target, :onto, :changes, :outcome)
ON CONFLICT (target, onto, changes) DO UPDATE SET outcome = :outcome
"""
DROP_CANDIDATE = """
DELETE FROM train_candidates WHERE target = :target AND onto = :onto AND changes = :changes
"""
TRAIN_RESULTS = "SELECT * FROM train_results WHERE target = :target AND rules = :rules"
TRAIN_TREES = "SELECT DISTINCT tree FROM train_results WHERE target = :target"
PUT_TRAIN_RESULT = """
INSERT INTO train_results (target, rules, tree, result, said, proof)
VALUES (:target, :rules, :tree, :result, :said, :proof)
ON CONFLICT (target, rules, tree) DO UPDATE SET result = :result, said = :said, proof = :proof
"""
DROP_TRAIN_RESULTS = "DELETE FROM train_results WHERE target = :target AND tree = :tree"
FORGET_UNJUDGED = "DELETE FROM train_results WHERE target = :target AND result = 'broken'"
EPOCH = "SELECT epoch FROM orchestration"
RAISE_EPOCH = "UPDATE orchestration SET epoch = epoch + 1 RETURNING epoch"
# Nobody raises it until the transaction ends.
HOLD_EPOCH = "UPDATE orchestration SET epoch = epoch WHERE epoch = :epoch RETURNING epoch"
INSERT_LANDING = """
INSERT INTO landings (
    target, number, time, expected, commit_id, tree, tasks, changes, landed, epoch, seconds
)
SELECT :target, coalesce(max(number), 0) + 1, :time, :expected, :commit_id, :tree, :tasks,
    :changes, NULL, :epoch, :seconds
FROM landings WHERE target = :target RETURNING number
"""
SETTLE_LANDING = """
UPDATE landings SET landed = :landed WHERE target = :target AND number = :number
"""
KEEP_EVIDENCE = """
UPDATE landings SET evidence = :evidence WHERE target = :target AND number = :number
"""
EVIDENCE = """
SELECT commit_id, evidence FROM landings
WHERE target = :target AND evidence <> '' ORDER BY number
"""
OPEN_LANDINGS = """
SELECT * FROM landings WHERE target = :target AND landed IS NULL ORDER BY number
"""
LANDED_LAST = """
SELECT * FROM landings WHERE target = :target AND landed = 1 ORDER BY number DESC LIMIT :limit
"""
PROOFS_OF = "SELECT proof FROM train_results WHERE target = :target AND tree = :tree"
LANDED_COMMIT = """
SELECT * FROM landings WHERE commit_id = :commit_id AND landed = 1 ORDER BY number LIMIT 1
"""
LANDED = """
SELECT coalesce(sum(changes), 0) AS n FROM landings
WHERE target = :target AND landed = 1 AND time < :before
"""

PEOPLE = "SELECT * FROM people ORDER BY name"
PUT_PERSON = """
INSERT INTO people (name, may, uid, token_hash, added, added_by)
VALUES (:name, :may, :uid, :token_hash, :added, :added_by)
ON CONFLICT (name) DO UPDATE SET may = :may, uid = :uid, added = :added, added_by = :added_by
"""
REMOVE_PERSON = "DELETE FROM people WHERE name = :name RETURNING name"

DRAFTS = "SELECT * FROM drafts WHERE task = :task AND person = :person ORDER BY time, id"
PUT_DRAFT = """
INSERT INTO drafts (id, task, patch, person, file, side, line, quote, text, priority, time)
VALUES (:id, :task, :patch, :person, :file, :side, :line, :quote, :text, :priority, :time)
ON CONFLICT (id) DO UPDATE SET patch = :patch, file = :file, side = :side, line = :line,
    quote = :quote, text = :text, priority = :priority, time = :time
"""
DROP_DRAFT = "DELETE FROM drafts WHERE id = :id"

SEEN = "SELECT need, until FROM seen WHERE person = :person"
MARK_SEEN = """
INSERT INTO seen (need, person, until) VALUES (:need, :person, :until)
ON CONFLICT (need, person) DO UPDATE SET until = :until
"""
UNMARK_SEEN = "DELETE FROM seen WHERE need = :need AND person = :person"

INSERT_PROJECT = """
INSERT INTO projects (id, name, common_dir, root, url)
VALUES (:id, :name, :common_dir, :root, :url)
ON CONFLICT (common_dir) DO NOTHING
"""
GIVE_HUB = "UPDATE projects SET url = :url WHERE id = :id"
PROJECT = "SELECT * FROM projects WHERE id = :id"
PROJECTS = "SELECT * FROM projects ORDER BY name, id"
PROJECT_AT = "SELECT * FROM projects WHERE common_dir = :common_dir"


@cache
def for_psycopg(statement: str) -> bytes:
    """The same statement with psycopg's placeholders: `:name` becomes `%(name)s`."""
    return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", statement.replace("%", "%%")).encode()


# Asked for every page of a task: what it leads to is loaded only where there is one.
HAS_PULL = "SELECT 1 AS one FROM pulls WHERE task = :task AND number > 0"
HAS_PULLS = "SELECT 1 AS one FROM pulls LIMIT 1"
HAS_HOSTS = "SELECT 1 AS one FROM hosts LIMIT 1"
