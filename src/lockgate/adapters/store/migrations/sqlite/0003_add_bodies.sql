-- Each text of a TASK.md that a decision was made on; kept when the task is deleted, as its events are.

CREATE TABLE bodies (
    task TEXT NOT NULL,
    rev INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (task, rev)
) WITHOUT ROWID;
