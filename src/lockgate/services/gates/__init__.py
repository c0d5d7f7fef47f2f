"""Gates: run, judged, compared with base."""
