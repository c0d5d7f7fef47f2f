-- The merge train: what was built and tested for a target branch, and what was meant to land.

ALTER TABLE tasks ADD COLUMN to_land bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN held text NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN landed text NOT NULL DEFAULT '';

CREATE TABLE train_candidates (
    target text NOT NULL,
    onto text NOT NULL,
    changes text NOT NULL,
    outcome text NOT NULL,
    PRIMARY KEY (target, onto, changes)
);

CREATE TABLE train_results (
    target text NOT NULL,
    rules text NOT NULL,
    tree text NOT NULL,
    result text NOT NULL,
    said text NOT NULL,
    proof text NOT NULL,
    PRIMARY KEY (target, rules, tree)
);

CREATE TABLE landings (
    target text NOT NULL,
    number bigint NOT NULL,
    time double precision NOT NULL,
    expected text NOT NULL,
    commit_id text NOT NULL,
    tree text NOT NULL,
    tasks text NOT NULL,
    changes bigint NOT NULL,
    landed bigint,
    PRIMARY KEY (target, number)
);
