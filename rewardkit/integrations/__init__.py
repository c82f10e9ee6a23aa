"""The same scorers for other trainers: an adapter each, and an HTTP server for the rest."""
