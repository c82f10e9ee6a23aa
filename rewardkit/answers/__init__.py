"""What an answer is: text -> candidate -> value -> verdict. Knows nothing of verl or datasets."""
