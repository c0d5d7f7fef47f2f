"""What a change's own set-up brings, compared with base's: what judges, and what is only used."""
