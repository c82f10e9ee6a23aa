"""Records what a reward returns, in the reward's process, and reads the records of a run."""
