"""Scorers: `score(response, ground_truth, extra_info=None, **options) -> Score`, one per file.

Each file also has `compute_score`, the function that verl calls. verl loads a file by its path
without an entry in `sys.modules`, so it contains only imports and plain functions.
"""
