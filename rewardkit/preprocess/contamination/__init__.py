"""Evaluation questions in training data, and near-duplicates within it."""
