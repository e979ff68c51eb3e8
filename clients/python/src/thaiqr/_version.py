"""The version of this package. It equals the version of the API that it was made for."""

__version__ = "1.0.0.dev0"
