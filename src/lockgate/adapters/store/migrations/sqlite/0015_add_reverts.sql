-- Which landed change a task takes back, where it takes one back.

ALTER TABLE tasks ADD COLUMN reverts TEXT NOT NULL DEFAULT '{}';
