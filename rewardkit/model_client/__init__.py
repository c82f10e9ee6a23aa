"""Requests to OpenAI-compatible servers: retries, back-off and adaptive concurrency."""
