-- Which reviewers an evaluation has asked for and what they said; how far a task's steps are.

ALTER TABLE tasks ADD COLUMN seats text NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN steps_passed text NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN step_failures bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN seat text NOT NULL DEFAULT '';
