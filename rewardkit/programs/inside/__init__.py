"""What runs in the sandbox's own interpreter, with the standard library only."""
