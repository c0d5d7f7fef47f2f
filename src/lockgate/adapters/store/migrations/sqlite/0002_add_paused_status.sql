-- S4's status. SQLite cannot change a CHECK, so the table is built again and its rows moved.

CREATE TABLE tasks_new (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    summary TEXT NOT NULL,
    branch TEXT NOT NULL,
    agent TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    rev INTEGER NOT NULL CHECK (rev >= 0),
    status TEXT NOT NULL CHECK (status IN (
        'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK',
        'PAUSED_FOR_INTERVENTION', 'DONE', 'CANCELLED'
    )),
    phase TEXT,
    priority INTEGER NOT NULL,
    auto_start INTEGER NOT NULL CHECK (auto_start IN (0, 1)),
    depends_on TEXT NOT NULL,
    iteration INTEGER NOT NULL CHECK (iteration >= 0),
    review_round INTEGER NOT NULL CHECK (review_round >= 0),
    crash_count INTEGER NOT NULL CHECK (crash_count >= 0),
    failed_attempts INTEGER NOT NULL CHECK (failed_attempts >= 0),
    generation INTEGER NOT NULL CHECK (generation >= 0),
    dead INTEGER NOT NULL CHECK (dead IN (0, 1)),
    cause TEXT,
    directive TEXT NOT NULL,
    history TEXT NOT NULL,
    spent TEXT NOT NULL,
    pinned TEXT
);

INSERT INTO tasks_new (
    id, project, summary, branch, agent, created, updated, rev, status, phase, priority, auto_start,
    depends_on, iteration, review_round, crash_count, failed_attempts, generation, dead, cause,
    directive, history, spent, pinned
)
SELECT
    id, project, summary, branch, agent, created, updated, rev, status, phase, priority, auto_start,
    depends_on, iteration, review_round, crash_count, failed_attempts, generation, dead, cause,
    directive, history, spent, pinned
FROM tasks;

DROP TABLE tasks;

ALTER TABLE tasks_new RENAME TO tasks;

CREATE INDEX tasks_newest ON tasks (created, id);
CREATE INDEX tasks_newest_of_project ON tasks (project, created, id);
CREATE INDEX tasks_newest_of_status ON tasks (status, created, id);
CREATE INDEX tasks_newest_of_project_and_status ON tasks (project, status, created, id);
