"""Open questions: whether an answer in words gives a gold answer, as people judge it.

`verdict.judge` reads the sentences of an answer (`words`), finds the wordings of the golds in them
(`golds`, `matching`), and asks whether a gold is the answer there, the only one (`rivals`) and
stated. `squad` has the rules of `exact`.
"""
