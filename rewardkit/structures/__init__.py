"""JSON, patterns and function calls in responses, read within limits."""
