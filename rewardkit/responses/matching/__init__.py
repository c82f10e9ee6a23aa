"""Which row of a parquet file a response answers."""
