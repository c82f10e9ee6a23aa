"""The same scorers for other trainers: one adapter module per trainer."""
