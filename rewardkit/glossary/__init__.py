"""Meaning of verl's metrics and configuration keys, in English and Chinese."""
