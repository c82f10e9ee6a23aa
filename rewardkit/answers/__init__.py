"""Extraction, parsing and comparison of answers. Independent of verl, scorers and datasets."""
