"""Datasets to verl parquet: source -> raw rows -> verl rows -> checks -> train.parquet."""
