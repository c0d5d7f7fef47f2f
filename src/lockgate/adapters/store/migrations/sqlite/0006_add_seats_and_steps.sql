-- Which reviewers an evaluation has asked for and what they said; how far a task's steps are.

ALTER TABLE tasks ADD COLUMN seats TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN steps_passed TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN step_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN seat TEXT NOT NULL DEFAULT '';
