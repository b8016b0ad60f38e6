"""A fitted model: one frozen value, and what can be done with it."""
