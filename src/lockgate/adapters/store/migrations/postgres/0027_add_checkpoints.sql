-- The last checkpoint of each task, for its next agent on any host. The tasks of a host are found by an index.
-- readable_from: 22

CREATE TABLE checkpoints (
    task text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    n bigint NOT NULL,
    facts text NOT NULL
);
CREATE INDEX tasks_of_host ON tasks (host) WHERE host <> '';
