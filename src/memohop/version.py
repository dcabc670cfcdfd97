"""The version, apart from the root package, which imports the layers above."""

__version__ = "0.2.0"
