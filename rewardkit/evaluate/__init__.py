"""Evaluate models: generate or read responses, score them as in training, compute metrics."""
