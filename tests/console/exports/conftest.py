"""Fixtures of the tests of money, for files that have all of it."""

from tests.console.conftest import served_by
from tests.operations.conftest import refund_shop
from tests.settlements.conftest import acquirer

__all__ = ["acquirer", "refund_shop", "served_by"]
