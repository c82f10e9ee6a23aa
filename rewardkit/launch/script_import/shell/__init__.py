"""Bash as far as launch scripts need it: read by tree-sitter, evaluated with what is known, never run."""
