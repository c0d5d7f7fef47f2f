-- What a task's agent and its people say to each other, and since when a human has the task.

ALTER TABLE tasks ADD COLUMN taken_at REAL NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN question TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN words TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN last_words TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET taken_at = updated WHERE taken_over = 1;
