-- By how many seconds the clock of a host is ahead of the database's.
-- readable_from: 22

ALTER TABLE hosts ADD COLUMN ahead double precision NOT NULL DEFAULT 0;
