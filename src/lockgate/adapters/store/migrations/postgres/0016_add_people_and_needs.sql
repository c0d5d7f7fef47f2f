-- Who did it, when a task entered its status, what its gate asks, what people keep and saw, and
-- what a day came to. Indexes for what needs a human, what waits for others, what changed last.

ALTER TABLE tasks ADD COLUMN entered double precision NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN asked text NOT NULL DEFAULT '';
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
    name text NOT NULL PRIMARY KEY,
    may text NOT NULL CHECK (may IN ('look', 'work', 'land', 'admin')),
    uid bigint UNIQUE,
    token_hash text UNIQUE,
    added double precision NOT NULL,
    added_by text NOT NULL
);

CREATE TABLE drafts (
    id text NOT NULL PRIMARY KEY,
    task text NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    patch text NOT NULL,
    person text NOT NULL,
    file text NOT NULL,
    side text NOT NULL,
    line bigint NOT NULL,
    quote text NOT NULL,
    text text NOT NULL,
    priority text NOT NULL,
    time double precision NOT NULL
);
CREATE INDEX drafts_of_task ON drafts (task, person, time, id);

-- A need that somebody has seen; `until` is when it is shown again as new, 0 is never.
CREATE TABLE seen (
    need text NOT NULL,
    person text NOT NULL,
    until double precision NOT NULL,
    PRIMARY KEY (need, person)
);

-- What the events of a day come to; a duration is counted in a bucket of like ones.
CREATE TABLE stats_daily (
    day bigint NOT NULL,
    project text NOT NULL,
    metric text NOT NULL,
    label text NOT NULL,
    bucket bigint NOT NULL,
    n bigint NOT NULL,
    amount double precision NOT NULL,
    PRIMARY KEY (day, project, metric, label, bucket)
);

-- One row: the last event that stats_daily counts.
CREATE TABLE stats_head (seq bigint NOT NULL);
INSERT INTO stats_head VALUES (0);
