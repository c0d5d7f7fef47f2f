"""`.lockgate/config.toml`: read it, judge it, detect what to put in it, write it."""
