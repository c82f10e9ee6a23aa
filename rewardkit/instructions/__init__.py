"""Constraints on a text that a program can check: IFEval, its training set IF-RLVR, and IFBench.

`text` splits a text, `languages` says which language it is in, `ifeval`, `ifrlvr` and `ifbench` have one
small function for each constraint, and `ground_truth` reads the constraints of a row. Each is checked in
time linear in the text, and the same text always gets the same verdict.
"""
