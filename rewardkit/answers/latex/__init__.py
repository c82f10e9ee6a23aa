"""A bounded reader of the mathematics in answers: text -> tokens -> a small tagged tree."""
