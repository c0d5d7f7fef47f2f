-- What a human must see and has said, and the result of every gate that was run.

ALTER TABLE tasks ADD COLUMN patch text NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN protected text NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN waiting text NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN approvals text NOT NULL DEFAULT '[]';

CREATE TABLE gate_results (
    task text NOT NULL,
    rev bigint NOT NULL,
    n bigint NOT NULL,
    time double precision NOT NULL,
    gate text NOT NULL,
    result text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (task, rev, n)
);
