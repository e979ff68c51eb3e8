"""The instance of `tests/flows`."""

from tests.flows.conftest import shop_client, stack, unpaid

__all__ = ["shop_client", "stack", "unpaid"]
