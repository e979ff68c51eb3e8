"""Siam Commercial Bank's API on loopback: it replays what the bank's documents show."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from banks import AdapterConfig
from core import clock
from merchants import bank_connections
from merchants.bank_connections import ConnectionConfig
from tests.conftest import Shop, open_shop
from tests.webhook_receiver import ReceivedRequest, Receiver, Reply, running_receiver

BILLER, REFERENCE = "762342992129431", "ABCDEFGHJ01234567890"
TOKENS, INQUIRY = "/v1/oauth/token", "/v1/payment/billpayment/inquiry"
SLIPS = "/v1/payment/billpayment/transactions"
# As a developer received it, with the numbers of this file.
CONFIRMATION: dict[str, Any] = {
    "payeeProxyId": BILLER,
    "payeeProxyType": "BILLERID",
    "payeeAccountNumber": "0987654321",
    "payeeName": "Sandbox",
    "payerProxyId": "0812345678",
    "payerProxyType": "MSISDN",
    "payerAccountNumber": "0123456789",
    "payerName": "สุศิริณี นุเช็ค",
    "sendingBankCode": "014",
    "receivingBankCode": "014",
    "amount": "1500.00",
    "transactionId": "201907169lbqgPbt1Bl3oiA",
    "transactionDateandTime": "2026-11-21T11:30:58+07:00",
    "billPaymentRef1": REFERENCE,
    "billPaymentRef2": "SHOP7",
    "billPaymentRef3": "PTF",
    "currencyCode": "764",
    "channelCode": "PMH",
    "transactionType": "Domestic Transfers",
}

# As its page on slips shows an answer.
SLIP: dict[str, Any] = {
    "transRef": "202611219lbqgPbt1Bl3oiA",
    "sendingBank": "014",
    "receivingBank": "014",
    "transDate": "20261121",
    "transTime": "11:30:58",
    "sender": {
        "displayName": "นาง สุศิริณี น",
        "name": "MRS. SUSIRINEE N",
        "proxy": {"type": None, "value": None},
        "account": {"type": "BANKAC", "value": "xxx-x-x6789-x"},
    },
    "receiver": {
        "displayName": "ร้านส้มตำ",
        "name": "SOMTAM HOUSE",
        "proxy": {"type": "BILLERID", "value": BILLER},
        "account": {"type": "BANKAC", "value": "xxx-x-x4321-x"},
    },
    "amount": "1500.00",
    "paidLocalAmount": "1500.00",
    "paidLocalCurrency": "764",
    "countryCode": "TH",
    "ref1": REFERENCE,
    "ref2": "SHOP7",
    "ref3": "PTF",
}

LINK = AdapterConfig(
    "scb", BILLER, {"application_key": "k", "application_secret": "s", "api_url": "https://scb.example"}
)


def confirmation(**changes: Any) -> bytes:
    return json.dumps(CONFIRMATION | changes).encode()


def transaction(**changes: Any) -> dict[str, Any]:
    """A row of the inquiry about the same payment."""
    more = {
        "eventCode": "00300100",
        "reverseFlag": "",
        "fastEasySlipNumber": "232815519467",
        "equivalentAmount": "",
        "exchangeRate": "",
        "partnerTransactionId": "",
        "tepaCode": "",
    }
    return CONFIRMATION | more | changes


def success(data: Any) -> Reply:
    return Reply(body=json.dumps({"status": {"code": 1000, "description": "Success"}, "data": data}).encode())


def token_response(token: str, seconds: int = 1800) -> Reply:
    return success(
        {"accessToken": token, "tokenType": "Bearer", "expiresIn": seconds, "expiresAt": 1550133185}
    )


def error_response(status: int = 401, code: int = 9300) -> Reply:
    shown = {"status": {"code": code, "description": "Invalid authorization credentials"}, "data": None}
    return Reply(status, body=json.dumps(shown).encode())


@dataclass
class FakeScb:
    """Grants one token and knows of no money, until it is told otherwise."""

    receiver: Receiver
    secret: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        self.set_token_responses(token_response("token-1"))

    @property
    def link(self) -> AdapterConfig:
        credentials = {
            "application_key": "l7f329b707a0714f",
            "application_secret": self.secret,
            "api_url": self.receiver.base_url,
        }
        return AdapterConfig("scb", BILLER, credentials)

    def set_token_responses(self, *replies: Reply) -> None:
        self.receiver.on(TOKENS, *replies)

    def knows_slip(self, reply: Reply, reference: str = SLIP["transRef"], bank: str = "014") -> None:
        self.receiver.on(f"{SLIPS}/{reference}?sendingBank={bank}", reply)

    def knows(self, day: str, *replies: Reply, reference: str = REFERENCE) -> None:
        """Answer so about one day of a code."""
        query = f"eventCode=00300100&transactionDate={day}&billerId={BILLER}&reference1={reference}"
        self.receiver.on(f"{INQUIRY}?{query}", *replies)

    @property
    def inquiries(self) -> list[ReceivedRequest]:
        return [each for each in self.receiver.requests if each.path.startswith(INQUIRY)]

    @property
    def days(self) -> list[str]:
        return [parse_qs(urlsplit(each.path).query)["transactionDate"][0] for each in self.inquiries]

    @property
    def tokens_given(self) -> int:
        return len(self.receiver.to(TOKENS))


def shop_at(bank: FakeScb, name: str = "Somtam House") -> Shop:
    """A live merchant that the stand-in serves."""
    shop = open_shop(name, mode="live")
    config = ConnectionConfig("scb", bank.link.biller_id, reference3="PTF", credentials=bank.link.credentials)
    bank_connections.connect(merchant_id=shop.merchant.id, config=config, now=clock.now())
    shop.merchant.refresh_from_db()
    return shop


@contextmanager
def run() -> Iterator[FakeScb]:
    with running_receiver() as receiver:
        yield FakeScb(receiver)
