-- Why a host gets nothing new, where that was not a person's word.
-- readable_from: 22

ALTER TABLE hosts ADD COLUMN why text NOT NULL DEFAULT '';
