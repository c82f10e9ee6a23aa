"""Reading an answer once: text -> tokens -> tree. `grammar.read` is the way in."""
