"""The version, in this one place: the build, the model files and the command line read it here."""

__version__ = "0.1.0"
