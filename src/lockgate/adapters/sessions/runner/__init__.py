"""The program that keeps one session. It imports the standard library and this package only."""
