-- How many tasks of a project are in each status, kept with every change: a board shows them, and
-- counting 100,000 rows each time takes longer than all the rest of it.

CREATE TABLE task_counts (
    project TEXT NOT NULL,
    status TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (project, status)
) WITHOUT ROWID;

INSERT INTO task_counts (project, status, n)
SELECT project, status, count(*) FROM tasks GROUP BY project, status;

CREATE TRIGGER tasks_counted_in AFTER INSERT ON tasks
BEGIN
    INSERT INTO task_counts (project, status, n) VALUES (new.project, new.status, 1)
    ON CONFLICT (project, status) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER tasks_counted_out AFTER DELETE ON tasks
BEGIN
    UPDATE task_counts SET n = n - 1 WHERE project = old.project AND status = old.status;
END;

CREATE TRIGGER tasks_counted_again AFTER UPDATE OF status ON tasks
WHEN old.status <> new.status
BEGIN
    UPDATE task_counts SET n = n - 1 WHERE project = old.project AND status = old.status;
    INSERT INTO task_counts (project, status, n) VALUES (new.project, new.status, 1)
    ON CONFLICT (project, status) DO UPDATE SET n = n + 1;
END;
