"""The pieces of a rehearsal: a few real steps of verl on the CPU, before accelerators are rented."""
