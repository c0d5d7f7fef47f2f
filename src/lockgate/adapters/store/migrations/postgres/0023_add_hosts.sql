-- Work on several hosts: who does which job, what hosts there are, and where a task and its sessions are.
-- readable_from: 22

CREATE TABLE lanes (
    lane text COLLATE "C" NOT NULL PRIMARY KEY,
    job text NOT NULL,
    class text NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    token text NOT NULL DEFAULT '',
    host text NOT NULL DEFAULT '',
    asked double precision NOT NULL,
    since double precision NOT NULL DEFAULT 0,
    until double precision NOT NULL DEFAULT 0,
    why text NOT NULL DEFAULT ''
);
CREATE INDEX lanes_to_put ON lanes (asked) WHERE token = '';

CREATE TABLE hosts (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    labels text NOT NULL,
    agents text NOT NULL,
    roles text NOT NULL,
    slots bigint NOT NULL,
    judges bigint NOT NULL,
    boot text NOT NULL,
    version text NOT NULL,
    ssh text NOT NULL,
    api text NOT NULL,
    state text NOT NULL CHECK (state IN ('up', 'draining', 'gone')),
    seen double precision NOT NULL
);

ALTER TABLE projects ADD COLUMN url text NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN host text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN host text NOT NULL DEFAULT '';
CREATE INDEX sessions_alive_of_host ON sessions (host) WHERE ended IS NULL;
