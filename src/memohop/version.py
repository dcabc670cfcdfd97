"""The version, apart from the root package: whoever needs it need not import what lies above."""

__version__ = "0.1.0"
