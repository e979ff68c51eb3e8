"""Bangkok Bank on loopback, and its signed notifications."""

import json
import secrets
from datetime import UTC, datetime
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from banks import AdapterConfig, jwt
from tests.webhook_receiver import Receiver, Reply

BILLER, REFERENCE = "010753600037453", "ABCDEFGHJ01234567890"
TOKENS, INQUIRY, VOID = "/oauth/accesstoken", "/biller/v1/inquiry", "/biller/v1/refund/reversal"
PAID_AT = datetime(2026, 11, 21, 4, 4, 39, tzinfo=UTC)
CHARGE = f"20261121.{REFERENCE}.2026112111043900858008"
PUSH: dict[str, Any] = {
    "billerId": BILLER,
    "transDate": "2026-11-21",
    "transTime": "11:04:39",
    "termType": "80",
    "amount": "1500.00",
    "reference1": REFERENCE,
    "reference2": "0011",
    "reference3": "",
    "fromBank": "004",
    "fromBranch": "0000",
    "fromName": "นาย สมชาย ใจดี",
    "bankRef": "2026112111043900858008",
    "approvalCode": "052447",
    "txnType": "C",
    "retryFlag": "N",
}


@cache
def key_pair(name: str) -> tuple[str, str]:
    """Private and public key in PEM, the same for a name."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def push(**changes: Any) -> bytes:
    """The body of a notification."""
    return json.dumps(PUSH | changes).encode()


def signed(body: bytes, *, now: datetime, key: str = "bank") -> str:
    """The bank's signature over a body."""
    return jwt.sign(json.loads(body), private_key=key_pair(key)[0], now=now)


def response(code: str = "000", **more: Any) -> Reply:
    return Reply(body=json.dumps({"responseCode": code, "responseMesg": "...", **more}).encode())


def token_response(token: str, **more: Any) -> Reply:
    return Reply(body=json.dumps({"accessToken": token, "expiresIn": "1799", **more}).encode())


class FakeBbl(Receiver):
    """Grants one token and has no payments, until `on` sets other replies."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.secret = secrets.token_hex(16)
        self.config = AdapterConfig("bbl", BILLER, credentials(self.secret, self.base_url))
        self.on(TOKENS, token_response("token-1"))
        self.on(INQUIRY, response("209"))


def credentials(
    secret: str = "consumer-secret", api_url: str = "https://api.bangkokbank.com"
) -> dict[str, str]:
    return {
        "consumer_id": "consumer",
        "consumer_secret": secret,
        "private_key": key_pair("ours")[0],
        "bank_public_key": key_pair("bank")[1],
        "api_url": api_url,
        "inquiry_path": INQUIRY,
        "void_path": VOID,
    }
