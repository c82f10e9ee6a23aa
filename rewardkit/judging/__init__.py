"""A model as the judge: rubric, prompt, strict parser, cache and budget."""
