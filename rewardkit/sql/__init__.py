"""Queries in responses: run on the row's SQLite database, and their results compared with the gold's."""
