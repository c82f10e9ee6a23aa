"""Scorers: `score(response, ground_truth, extra_info=None, **options) -> Score`, one per file.

`SPEC = ScorerSpec(score, __doc__, respond)` in the file says the rest, and `compute_score =
SPEC.compute_score` is the function that verl calls. verl loads a file by its path without an entry in
`sys.modules`, and its manager `remote` pickles it: a file contains only imports, functions and its spec.
"""
