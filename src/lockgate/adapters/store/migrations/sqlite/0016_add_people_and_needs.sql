-- Who did it, when a task entered its status, what its gate asks, what people keep and saw, and
-- what a day came to. Indexes for what needs a human, what waits for others, what changed last.

ALTER TABLE tasks ADD COLUMN entered REAL NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN asked TEXT NOT NULL DEFAULT '';
UPDATE tasks SET entered = updated;

CREATE INDEX tasks_needing ON tasks (project, created, id) WHERE (
    status IN ('CLARIFICATION', 'REVIEWING', 'STUCK', 'PAUSED_FOR_INTERVENTION')
    OR troubled <> ''
    OR status IN ('WORKING', 'AGENT_REVIEW')
    AND (waiting <> '' OR escalated <> '' OR dead = 1 OR taken_over = 1)
);
CREATE INDEX tasks_depending ON tasks (id, status, depends_on)
WHERE depends_on <> '[]' AND status NOT IN ('DONE', 'CANCELLED');
CREATE INDEX tasks_live ON tasks (updated, id) WHERE status NOT IN ('DONE', 'CANCELLED');
CREATE INDEX tasks_live_of_project ON tasks (project, updated, id)
WHERE status NOT IN ('DONE', 'CANCELLED');
-- A list of what it is not, so that no index of statuses looks better.
CREATE INDEX tasks_ended ON tasks (updated, id) WHERE status NOT IN (
    'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK',
    'PAUSED_FOR_INTERVENTION'
);
CREATE INDEX tasks_ended_of_project ON tasks (project, updated, id) WHERE status NOT IN (
    'PENDING', 'CLARIFICATION', 'WORKING', 'AGENT_REVIEW', 'REVIEWING', 'STUCK',
    'PAUSED_FOR_INTERVENTION'
);

CREATE TABLE people (
    name TEXT NOT NULL PRIMARY KEY,
    may TEXT NOT NULL CHECK (may IN ('look', 'work', 'land', 'admin')),
    uid INTEGER UNIQUE,
    token_hash TEXT UNIQUE,
    added REAL NOT NULL,
    added_by TEXT NOT NULL
);

CREATE TABLE drafts (
    id TEXT NOT NULL PRIMARY KEY,
    task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    patch TEXT NOT NULL,
    person TEXT NOT NULL,
    file TEXT NOT NULL,
    side TEXT NOT NULL,
    line INTEGER NOT NULL,
    quote TEXT NOT NULL,
    text TEXT NOT NULL,
    priority TEXT NOT NULL,
    time REAL NOT NULL
);
CREATE INDEX drafts_of_task ON drafts (task, person, time, id);

-- A need that somebody has seen; `until` is when it is shown again as new, 0 is never.
CREATE TABLE seen (
    need TEXT NOT NULL,
    person TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (need, person)
);

-- What the events of a day come to; a duration is counted in a bucket of like ones.
CREATE TABLE stats_daily (
    day INTEGER NOT NULL,
    project TEXT NOT NULL,
    metric TEXT NOT NULL,
    label TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    n INTEGER NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (day, project, metric, label, bucket)
) WITHOUT ROWID;

-- One row: the last event that stats_daily counts.
CREATE TABLE stats_head (seq INTEGER NOT NULL);
INSERT INTO stats_head VALUES (0);
