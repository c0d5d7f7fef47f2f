"""Faces: parse, call one service, show."""
