"""Agents' sessions: started, watched, heard."""
