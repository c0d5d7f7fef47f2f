-- The newest orchestrator's epoch, and the epoch in which each landing was meant.

CREATE TABLE orchestration (epoch bigint NOT NULL);
INSERT INTO orchestration VALUES (0);

ALTER TABLE landings ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
