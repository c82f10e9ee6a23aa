"""Find the row of a parquet file that a response answers."""
