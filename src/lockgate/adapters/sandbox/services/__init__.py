"""Services beside a command: a database, a cache or a program, started where the command runs."""
