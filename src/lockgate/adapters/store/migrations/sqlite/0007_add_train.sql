-- The merge train: what was built and tested for a target branch, and what was meant to land.

ALTER TABLE tasks ADD COLUMN to_land INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN held TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN landed TEXT NOT NULL DEFAULT '';

CREATE TABLE train_candidates (
    target TEXT NOT NULL,
    onto TEXT NOT NULL,
    changes TEXT NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (target, onto, changes)
);

CREATE TABLE train_results (
    target TEXT NOT NULL,
    rules TEXT NOT NULL,
    tree TEXT NOT NULL,
    result TEXT NOT NULL,
    said TEXT NOT NULL,
    proof TEXT NOT NULL,
    PRIMARY KEY (target, rules, tree)
);

CREATE TABLE landings (
    target TEXT NOT NULL,
    number INTEGER NOT NULL,
    time REAL NOT NULL,
    expected TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    tasks TEXT NOT NULL,
    changes INTEGER NOT NULL,
    landed INTEGER,
    PRIMARY KEY (target, number)
);
