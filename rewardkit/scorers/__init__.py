"""Scorers: `score(response, ground_truth, extra_info=None, **options) -> Score`, one per file.

Each file also holds `compute_score`, the function verl calls, and loads by path as well as by
`pkg://`: it contains imports and plain functions only.
"""
