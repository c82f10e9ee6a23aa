"""Open questions: whether an answer in words gives a gold answer, as people judge it.

`judge` reads the sentences of an answer (`words`), compares each with the gold in its wordings
(`golds`, `matching`, `dates`), and asks whether the sentence states what it has as its only answer
(`claims`). `exact` has the rules of SQuAD.
"""
