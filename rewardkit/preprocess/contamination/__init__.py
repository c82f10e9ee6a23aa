"""Find evaluation items in training rows, and near-duplicates among the rows."""
