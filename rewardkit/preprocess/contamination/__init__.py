"""Find evaluation items in training rows."""
