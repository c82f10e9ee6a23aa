"""Evaluate models: generate or read responses, judge them as in training, compute metrics."""
