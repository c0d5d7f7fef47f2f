-- How long the gates of the train took for what landed, so that people are told when theirs will.

ALTER TABLE landings ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
