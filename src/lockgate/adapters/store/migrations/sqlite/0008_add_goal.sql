-- What a human asked for, apart from the summary, which an agent may rewrite.

ALTER TABLE tasks ADD COLUMN goal TEXT NOT NULL DEFAULT '';
UPDATE tasks SET goal = summary;
