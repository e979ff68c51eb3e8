"""A merchant of a running instance for a shop software, made by commands as staff do."""

import json
from collections.abc import Sequence

from tests.flows.conftest import ShopClient
from tests.stack import Stack


def open_merchant(stack: Stack, shop_url: str) -> ShopClient:
    """The client of a test merchant with all scopes, whose payment page leads back to the shop."""
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam House", "--mode", "test", "--json"))
    stack.manage("page_origins", made["merchant_id"], shop_url)
    return ShopClient(stack.base_url, made["secret_key"], made["merchant_id"])


def new_key(stack: Stack, merchant_id: str, scopes: Sequence[str]) -> str:
    made = json.loads(stack.manage("issue_key", merchant_id, "--json", "--scopes", *scopes))
    key: str = made["secret_key"]
    return key
