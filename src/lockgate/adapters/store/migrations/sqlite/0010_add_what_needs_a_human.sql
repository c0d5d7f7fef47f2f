-- What needs a human though no status says so: steps that failed a worker, work that keeps failing.

ALTER TABLE tasks ADD COLUMN escalated TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN troubled TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_troubled ON tasks (created, id) WHERE troubled <> '';
