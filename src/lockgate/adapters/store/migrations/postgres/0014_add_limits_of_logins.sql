-- Which login hit a usage limit, until when, and which agent another one stands in for.

ALTER TABLE tasks ADD COLUMN instead_of text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN limited_until double precision NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_limit ON sessions (limited_until, id) WHERE limited_until > 0;
