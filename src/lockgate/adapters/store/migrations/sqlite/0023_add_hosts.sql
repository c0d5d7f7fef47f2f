-- Work on several hosts: who does which job, what hosts there are, and where a task and its sessions are.
-- readable_from: 22

CREATE TABLE lanes (
    lane TEXT NOT NULL PRIMARY KEY,
    job TEXT NOT NULL,
    class TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    token TEXT NOT NULL DEFAULT '',
    host TEXT NOT NULL DEFAULT '',
    asked REAL NOT NULL,
    since REAL NOT NULL DEFAULT 0,
    until REAL NOT NULL DEFAULT 0,
    why TEXT NOT NULL DEFAULT ''
);
CREATE INDEX lanes_to_put ON lanes (asked) WHERE token = '';

CREATE TABLE hosts (
    name TEXT NOT NULL PRIMARY KEY,
    labels TEXT NOT NULL,
    agents TEXT NOT NULL,
    roles TEXT NOT NULL,
    slots INTEGER NOT NULL,
    judges INTEGER NOT NULL,
    boot TEXT NOT NULL,
    version TEXT NOT NULL,
    ssh TEXT NOT NULL,
    api TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('up', 'draining', 'gone')),
    seen REAL NOT NULL
);

ALTER TABLE projects ADD COLUMN url TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN host TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_alive_of_host ON sessions (host) WHERE ended IS NULL;
