"""Parser of answers: text -> tokens -> tree, by `tokens.tokenize` and `grammar.parse`."""
