"""Checks of data: rows and golds, duplicates, contamination, prompt lengths, files that load together."""
