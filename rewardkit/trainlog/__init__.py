"""Logs of training runs: read into one table, summarized, diagnosed and drawn."""
