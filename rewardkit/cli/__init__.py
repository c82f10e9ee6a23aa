"""The command line: one file per command, which parses, calls and prints. No logic."""
