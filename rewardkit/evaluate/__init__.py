"""Evaluation: responses from a server or a file, judged as in training, and figures of them."""
