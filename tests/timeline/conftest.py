from tests.console.conftest import clock, served_by

__all__ = ["clock", "served_by"]
