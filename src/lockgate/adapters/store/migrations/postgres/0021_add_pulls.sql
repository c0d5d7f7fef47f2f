-- Pull requests of tasks: what was pushed, what an agent has heard, and what was about to be done.

CREATE TABLE pulls (
    task TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    number INTEGER NOT NULL,
    pushed TEXT NOT NULL,
    intent TEXT NOT NULL,
    delivered TEXT NOT NULL,
    etags TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE INDEX pulls_of_project ON pulls (project);
