"""What learns: one file for each method."""
