-- How large a task's change is, so that one which nobody would have written by hand is said.

ALTER TABLE tasks ADD COLUMN size text NOT NULL DEFAULT '{"added":0,"files":0}';
