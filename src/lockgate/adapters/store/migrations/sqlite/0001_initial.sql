-- S2's eight statuses; every counter of a task stands in its row.

CREATE TABLE projects (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    common_dir TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL
);

CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    project TEXT NOT NULL REFERENCES projects (id),
    summary TEXT NOT NULL,
    branch TEXT NOT NULL,
    agent TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    rev INTEGER NOT NULL CHECK (rev >= 0),
    status TEXT NOT NULL CHECK (status IN (
        'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK', 'DONE',
        'CANCELLED'
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

CREATE INDEX tasks_newest ON tasks (created, id);
CREATE INDEX tasks_newest_of_project ON tasks (project, created, id);
CREATE INDEX tasks_newest_of_status ON tasks (status, created, id);
CREATE INDEX tasks_newest_of_project_and_status ON tasks (project, status, created, id);

CREATE TABLE events (
    seq INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
    time REAL NOT NULL,
    task TEXT NOT NULL,
    type TEXT NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    data TEXT NOT NULL
);

CREATE INDEX events_of_task ON events (task, seq);

-- One row: the last event's seq and hash, so that a log cut short is seen.
CREATE TABLE log_head (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
);

INSERT INTO log_head (one, seq, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- What is still to do; a row goes when it is done.
CREATE TABLE outbox (
    task TEXT NOT NULL,
    rev INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (task, rev, n)
) WITHOUT ROWID;

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    round INTEGER NOT NULL CHECK (round >= 0),
    generation INTEGER NOT NULL CHECK (generation >= 0),
    token_hash TEXT NOT NULL UNIQUE,
    started REAL NOT NULL,
    ended REAL,
    directory TEXT
);

CREATE INDEX sessions_of_task ON sessions (task, started, id);
