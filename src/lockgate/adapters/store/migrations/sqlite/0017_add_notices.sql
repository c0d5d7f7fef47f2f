-- Who was told of what needs a human, what sessions have cost, and who is logged in at the web board.

CREATE TABLE notices (
    key TEXT NOT NULL,
    target TEXT NOT NULL,
    nth INTEGER NOT NULL,
    noticed REAL NOT NULL,
    due REAL NOT NULL,
    tries INTEGER NOT NULL,
    sent REAL NOT NULL,
    gone REAL NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (key, target, nth)
);

-- It outlives the task: what was spent stays spent.
CREATE TABLE spending (
    session TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    ended REAL NOT NULL,
    usd REAL NOT NULL
);
CREATE INDEX spending_by_day ON spending (project, ended);
INSERT INTO spending (session, project, ended, usd)
SELECT sessions.id, tasks.project, sessions.ended, sessions.usd
FROM sessions JOIN tasks ON tasks.id = sessions.task
WHERE sessions.ended IS NOT NULL AND sessions.usd > 0;

-- Links, logins and tokens, each as a hash.
CREATE TABLE web_keys (
    hash TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    read_only INTEGER NOT NULL,
    made REAL NOT NULL,
    expires REAL NOT NULL
);
