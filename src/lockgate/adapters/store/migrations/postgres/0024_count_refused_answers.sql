-- How many late answers of a host were refused, because another had its job by then.
-- readable_from: 22

ALTER TABLE hosts ADD COLUMN refused bigint NOT NULL DEFAULT 0;
