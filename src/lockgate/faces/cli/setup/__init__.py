"""Commands that set up a repository, a login, a trust, and look at the machine."""
