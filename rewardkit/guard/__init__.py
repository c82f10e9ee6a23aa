"""A user's reward inside verl: in child processes, with deadlines, and with the same keys always."""
