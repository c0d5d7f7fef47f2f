-- Each text of a TASK.md that a decision was made on; kept when the task is deleted, as its events are.

CREATE TABLE bodies (
    task text NOT NULL,
    rev bigint NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (task, rev)
);
