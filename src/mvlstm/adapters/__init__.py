"""Models in the forms of other tools; each module needs the library that it is named after."""
