-- Whether another task has a branch is asked whenever a task is created or published.

CREATE INDEX tasks_of_branch ON tasks (project, branch);
