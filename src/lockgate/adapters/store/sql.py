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
    taken_at, question, words, last_words, reverts, instead_of
) VALUES (
    :id, :project, :summary, :goal, :branch, :agent, :created, :updated, :rev, :status, :phase,
    :priority, :auto_start, :depends_on, :iteration, :review_round, :crash_count, :failed_attempts,
    :generation, :since, :dead, :taken_over, :not_before, :exhausted, :usd, :tokens, :seconds,
    :candidate, :patch, :protected, :passed, :waiting, :approvals, :seats, :steps_passed,
    :step_failures, :escalated, :troubled, :to_land, :held, :landed, :cause, :directive, :history,
    :spent, :pinned, :size, :taken_at, :question, :words, :last_words, :reverts,
    :instead_of
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
    reverts = :reverts, instead_of = :instead_of
WHERE id = :id AND rev = :rev - 1 RETURNING id
"""

# Its sessions go with it.
DELETE_TASK = "DELETE FROM tasks WHERE id = :id AND rev = :rev - 1 RETURNING id"

TASK = "SELECT * FROM tasks WHERE id = :id"
TASKS_NAMED = "SELECT id FROM tasks WHERE id >= :prefix AND id < :end ORDER BY id LIMIT 3"

TASKS_ON_BRANCH = """
SELECT * FROM tasks WHERE project = :project AND branch = :branch ORDER BY created, id
"""

TASKS_TROUBLED = "SELECT * FROM tasks WHERE troubled <> '' ORDER BY created DESC, id DESC"

COUNTS = "SELECT status, count(*) AS n FROM tasks GROUP BY status"
COUNTS_OF = "SELECT status, count(*) AS n FROM tasks WHERE project = :project GROUP BY status"

# Four pages, so that each is one walk along one index.
PAGE = """
SELECT * FROM tasks WHERE (created, id) < (:created, :id)
ORDER BY created DESC, id DESC LIMIT :limit
"""
PAGE_OF_PROJECT = """
SELECT * FROM tasks WHERE project = :project AND (created, id) < (:created, :id)
ORDER BY created DESC, id DESC LIMIT :limit
"""
PAGE_OF_STATUS = """
SELECT * FROM tasks WHERE status = :status AND (created, id) < (:created, :id)
ORDER BY created DESC, id DESC LIMIT :limit
"""
PAGE_OF_PROJECT_AND_STATUS = """
SELECT * FROM tasks
WHERE project = :project AND status = :status AND (created, id) < (:created, :id)
ORDER BY created DESC, id DESC LIMIT :limit
"""

HEAD = "SELECT seq, hash FROM log_head"
# Takes the next numbers and holds the row, so that writers append one after the other.
TAKE_NUMBERS = "UPDATE log_head SET seq = seq + :count RETURNING seq, hash"
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
INSERT INTO outbox (task, rev, n, kind, data) VALUES (:task, :rev, :n, :kind, :data)
ON CONFLICT (task, rev, n) DO UPDATE SET kind = :kind, data = :data
"""
EFFECT_DONE = "DELETE FROM outbox WHERE task = :task AND rev = :rev AND n = :n"
EFFECTS = "SELECT * FROM outbox ORDER BY task, rev, n LIMIT :limit"
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
    interactive, usd, tokens, seat, asked, login, limited_until
) VALUES (
    :id, :task, :role, :round, :generation, :token_hash, :started, :ended, :directory, :agent,
    :native, :interactive, :usd, :tokens, :seat, :asked, :login, :limited_until
) ON CONFLICT (id) DO UPDATE SET
    task = :task, role = :role, round = :round, generation = :generation,
    token_hash = :token_hash, started = :started, ended = :ended, directory = :directory,
    agent = :agent, native = :native, interactive = :interactive, usd = :usd, tokens = :tokens,
    seat = :seat, asked = :asked, login = :login, limited_until = :limited_until
"""
SESSION = "SELECT * FROM sessions WHERE id = :id"
SESSIONS_ALIVE = "SELECT * FROM sessions WHERE ended IS NULL ORDER BY id"
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
    target, number, time, expected, commit_id, tree, tasks, changes, landed, epoch
)
SELECT :target, coalesce(max(number), 0) + 1, :time, :expected, :commit_id, :tree, :tasks,
    :changes, NULL, :epoch
FROM landings WHERE target = :target RETURNING number
"""
SETTLE_LANDING = """
UPDATE landings SET landed = :landed WHERE target = :target AND number = :number
"""
OPEN_LANDINGS = """
SELECT * FROM landings WHERE target = :target AND landed IS NULL ORDER BY number
"""
LANDED_COMMIT = """
SELECT * FROM landings WHERE commit_id = :commit_id AND landed = 1 ORDER BY number LIMIT 1
"""
LANDED = """
SELECT coalesce(sum(changes), 0) AS n FROM landings
WHERE target = :target AND landed = 1 AND time < :before
"""

INSERT_PROJECT = """
INSERT INTO projects (id, name, common_dir, root) VALUES (:id, :name, :common_dir, :root)
ON CONFLICT (common_dir) DO NOTHING
"""
PROJECT = "SELECT * FROM projects WHERE id = :id"
PROJECT_AT = "SELECT * FROM projects WHERE common_dir = :common_dir"


@cache
def for_psycopg(statement: str) -> bytes:
    """The same statement with psycopg's placeholders: `:name` becomes `%(name)s`."""
    return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", statement.replace("%", "%%")).encode()
