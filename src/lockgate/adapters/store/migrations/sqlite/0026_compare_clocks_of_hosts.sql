-- By how many seconds the clock of a host is ahead of the database's.
-- readable_from: 22

ALTER TABLE hosts ADD COLUMN ahead REAL NOT NULL DEFAULT 0;
