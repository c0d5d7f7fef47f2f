-- What is ready, what is new and what waits in vain is found by an index, not by reading all tasks.
-- readable_from: 18

ALTER TABLE log_head ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_by_turn ON outbox (turn, task, rev, n);

-- How many of a task's dependencies are not done, and how many of these will not be by themselves.
ALTER TABLE tasks ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN in_vain TEXT NOT NULL DEFAULT '';
CREATE TABLE dependencies (
    task TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    needs TEXT NOT NULL,
    PRIMARY KEY (task, needs)
);
CREATE INDEX dependencies_by_need ON dependencies (needs);
INSERT INTO dependencies (task, needs)
SELECT DISTINCT tasks.id, named.value FROM tasks, json_each(tasks.depends_on) AS named;
UPDATE tasks SET
    blocked = (
        SELECT count(*) FROM dependencies AS d LEFT JOIN tasks AS n ON n.id = d.needs
        WHERE d.task = tasks.id AND (n.status IS NULL OR n.status <> 'DONE')
    ),
    lost = (
        SELECT count(*) FROM dependencies AS d LEFT JOIN tasks AS n ON n.id = d.needs
        WHERE d.task = tasks.id AND (n.status IS NULL OR n.status IN ('CANCELLED', 'STUCK', 'PAUSED_FOR_INTERVENTION'))
    )
WHERE id IN (SELECT task FROM dependencies);

CREATE INDEX tasks_ready ON tasks (project, priority, created, id)
WHERE status = 'PENDING' AND auto_start = 1 AND blocked = 0;
DROP INDEX tasks_needing;
CREATE INDEX tasks_needing ON tasks (project, created, id) WHERE (
    status IN ('CLARIFICATION', 'REVIEWING', 'STUCK', 'PAUSED_FOR_INTERVENTION')
    OR troubled <> ''
    OR in_vain <> ''
    OR status IN ('WORKING', 'AGENT_REVIEW')
    AND (waiting <> '' OR escalated <> '' OR dead = 1 OR taken_over = 1)
);
CREATE INDEX tasks_in_vain ON tasks (id) WHERE lost > 0 OR in_vain <> '';
CREATE INDEX tasks_at_work ON tasks (project, not_before)
WHERE status IN ('WORKING', 'AGENT_REVIEW') AND dead = 0;
CREATE INDEX tasks_to_land ON tasks (project, rev, updated) WHERE status = 'REVIEWING';

-- The evidence of a landed commit, from which its note can be written again.
ALTER TABLE landings ADD COLUMN evidence TEXT NOT NULL DEFAULT '';

-- The oldest schema version whose programs may still use this database.
CREATE TABLE schema_facts (
    one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    readable_from INTEGER NOT NULL
);
INSERT INTO schema_facts (one, readable_from) VALUES (1, 18);
