"""What a person needs to know once everything runs."""

import json
from collections.abc import Mapping

SAMPLE = {"amount": 10000, "currency": "THB", "reference": "order-1"}

TEXT = """
  Thai QR Payments is running.

  API        {url}/Thai/v1    (reference: {url}/docs)
  Test key   {secret_key}
  Admin      {url}/admin    user {admin_user}, password {admin_password}
  Bank       {url}/sandbox/bank    plays the customer's bank

  A QR code for 100.00 baht:

curl -sS -X POST {url}/Thai/v1/qr-codes \\
  -H "Authorization: Bearer {secret_key}" \\
  -H "Content-Type: application/json" \\
  -d '{sample}'

  Ctrl-C stops everything; the data stays in {folder}.
"""


def banner(url: str, folder: str, demo: Mapping[str, str]) -> str:
    return TEXT.format(url=url, folder=folder, sample=json.dumps(SAMPLE), **demo)
