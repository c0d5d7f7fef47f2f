-- What a human must see and has said, and the result of every gate that was run.

ALTER TABLE tasks ADD COLUMN patch TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN protected TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN waiting TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN approvals TEXT NOT NULL DEFAULT '[]';

CREATE TABLE gate_results (
    task TEXT NOT NULL,
    rev INTEGER NOT NULL,
    n INTEGER NOT NULL,
    time REAL NOT NULL,
    gate TEXT NOT NULL,
    result TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (task, rev, n)
);
