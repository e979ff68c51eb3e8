"""A refund that waits for an account, in a whole instance, and the link of its payer."""

import hashlib
import hmac
import json
import time
from typing import Any

import requests

from core import ids
from tests.conftest import SandboxBankClient, new_client
from tests.flows.conftest import ShopClient
from tests.reconciliation.claims.builders import NO_BANK
from tests.stack import Stack


def waiting_claim(stack: Stack, shop_client: ShopClient) -> dict[str, Any]:
    """The `path` of the refund, the `url` of the link, and the reference of the `slip`."""
    code, slip = shop_client.qr_code(reference="INV-2026-0042"), ids.random_text(20)
    _pay_from_unknown_bank(stack, code, slip)
    shop_client.wait_for_status(code, "succeeded")
    refund = shop_client.post("/v1/refunds", {"payment_id": code["payment_id"]})
    path = f"/v1/refunds/{refund['refund_id']}"
    shop_client.post(f"{path}/claim-link", {})
    return {"path": path, "slip": slip, "url": shop_client.get(f"{path}/claim-link")["claim_url"]}


def _pay_from_unknown_bank(stack: Stack, code: dict[str, Any], slip: str) -> None:
    changes = {"transaction_id": slip, "payer_bank_code": NO_BANK}
    body = json.dumps(SandboxBankClient(new_client()).notification(code, **changes)).encode()
    at = str(int(time.time()))
    key = stack.env["SANDBOX_BANK_SECRET"].encode()
    digest = hmac.new(key, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "Sandbox-Bank-Signature": f"t={at},v1={digest}"}
    requests.post(f"{stack.base_url}/banks/sandbox/notifications", body, headers=headers, timeout=60)
