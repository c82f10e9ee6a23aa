"""Programs that a model wrote: read from responses, run against tests in a sandbox, compared."""
