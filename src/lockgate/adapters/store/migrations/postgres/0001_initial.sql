-- S2's eight statuses; every counter of a task stands in its row. Ids compare byte by byte ("C").

CREATE TABLE projects (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    name text NOT NULL,
    common_dir text NOT NULL UNIQUE,
    root text NOT NULL
);

CREATE TABLE tasks (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    project text NOT NULL REFERENCES projects (id),
    summary text NOT NULL,
    branch text NOT NULL,
    agent text NOT NULL,
    created double precision NOT NULL,
    updated double precision NOT NULL,
    rev integer NOT NULL CHECK (rev >= 0),
    status text NOT NULL CONSTRAINT tasks_status CHECK (status IN (
        'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK', 'DONE',
        'CANCELLED'
    )),
    phase text,
    priority integer NOT NULL,
    auto_start integer NOT NULL CHECK (auto_start IN (0, 1)),
    depends_on text NOT NULL,
    iteration integer NOT NULL CHECK (iteration >= 0),
    review_round integer NOT NULL CHECK (review_round >= 0),
    crash_count integer NOT NULL CHECK (crash_count >= 0),
    failed_attempts integer NOT NULL CHECK (failed_attempts >= 0),
    generation integer NOT NULL CHECK (generation >= 0),
    dead integer NOT NULL CHECK (dead IN (0, 1)),
    cause text,
    directive text NOT NULL,
    history text NOT NULL,
    spent text NOT NULL,
    pinned text
);

CREATE INDEX tasks_newest ON tasks (created, id);
CREATE INDEX tasks_newest_of_project ON tasks (project, created, id);
CREATE INDEX tasks_newest_of_status ON tasks (status, created, id);
CREATE INDEX tasks_newest_of_project_and_status ON tasks (project, status, created, id);

CREATE TABLE events (
    seq bigint NOT NULL PRIMARY KEY CHECK (seq >= 1),
    time double precision NOT NULL,
    task text NOT NULL,
    type text NOT NULL,
    prev text NOT NULL,
    hash text NOT NULL,
    data text NOT NULL
);

CREATE INDEX events_of_task ON events (task, seq);

-- One row: the last event's seq and hash, so that a log cut short is seen.
CREATE TABLE log_head (
    one integer NOT NULL PRIMARY KEY CHECK (one = 1),
    seq bigint NOT NULL,
    hash text NOT NULL
);

INSERT INTO log_head (one, seq, hash)
VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- What is still to do; a row goes when it is done.
CREATE TABLE outbox (
    task text COLLATE "C" NOT NULL,
    rev bigint NOT NULL,
    n integer NOT NULL,
    kind text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (task, rev, n)
);

CREATE TABLE sessions (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task text NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    role text NOT NULL,
    round integer NOT NULL CHECK (round >= 0),
    generation integer NOT NULL CHECK (generation >= 0),
    token_hash text NOT NULL UNIQUE,
    started double precision NOT NULL,
    ended double precision,
    directory text
);

CREATE INDEX sessions_of_task ON sessions (task, started, id);
