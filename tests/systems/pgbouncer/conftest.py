"""The instance of `tests/flows`."""

from tests.flows.conftest import stack

__all__ = ["stack"]
