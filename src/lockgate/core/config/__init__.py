"""The settings of a project: what they say, whether they fit together, what they ask for."""
