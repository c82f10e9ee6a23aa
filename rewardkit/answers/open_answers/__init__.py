"""Open questions: whether an answer in words gives a gold answer, as people judge it.

`verdict.judge` reads the sentences of an answer (`words`), compares each with the wordings of the golds
(`golds`, `matching`), and asks whether the sentence states a gold as its only answer. `squad` has the
rules of `exact`.
"""
