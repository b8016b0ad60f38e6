"""Models in the forms of other tools."""
