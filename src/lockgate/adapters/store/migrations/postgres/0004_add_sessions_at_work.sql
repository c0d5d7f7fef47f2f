-- What agents use up, what is judged, and how a session is taken up again.

ALTER TABLE tasks ADD COLUMN since bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN taken_over integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN not_before double precision NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN exhausted integer NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN usd double precision NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN tokens bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN seconds double precision NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN candidate text NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN passed text NOT NULL DEFAULT '[]';

ALTER TABLE sessions ADD COLUMN agent text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN native text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN interactive integer NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN usd double precision NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN tokens bigint NOT NULL DEFAULT 0;

CREATE INDEX sessions_alive ON sessions (id) WHERE ended IS NULL;
