"""Siam Commercial Bank on loopback, with the objects of its documents."""

import json
import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

from banks import AdapterConfig
from core import clock
from merchants import bank_connections
from merchants.bank_connections import ConnectionConfig
from tests.conftest import Shop, open_shop
from tests.webhook_receiver import ReceivedRequest, Receiver, Reply

BILLER, REFERENCE = "762342992129431", "ABCDEFGHJ01234567890"
TOKENS, INQUIRY = "/v1/oauth/token", "/v1/payment/billpayment/inquiry"
SLIPS = "/v1/payment/billpayment/transactions"
# A confirmation that a developer received, with the numbers of this file.
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

# The answer on the page about slips.
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

CONFIG = AdapterConfig(
    "scb", BILLER, {"application_key": "k", "application_secret": "s", "api_url": "https://scb.example"}
)


def confirmation(**changes: Any) -> bytes:
    return json.dumps(CONFIRMATION | changes).encode()


def transaction(**changes: Any) -> dict[str, Any]:
    """A row of an inquiry's answer about the same payment."""
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


class FakeScb(Receiver):
    """Grants one token and has no payments, until `on` sets other replies."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.secret = secrets.token_hex(16)
        credentials = {
            "application_key": "l7f329b707a0714f",
            "application_secret": self.secret,
            "api_url": self.base_url,
        }
        self.config = AdapterConfig("scb", BILLER, credentials)
        self.on(TOKENS, token_response("token-1"))

    def on_slip(self, reply: Reply, reference: str = SLIP["transRef"], bank: str = "014") -> None:
        self.on(f"{SLIPS}/{reference}?sendingBank={bank}", reply)

    def on_inquiry(self, day: str, *replies: Reply, reference: str = REFERENCE) -> None:
        """Set the replies about one day of a code."""
        query = f"eventCode=00300100&transactionDate={day}&billerId={BILLER}&reference1={reference}"
        self.on(f"{INQUIRY}?{query}", *replies)

    @property
    def inquiries(self) -> list[ReceivedRequest]:
        return [request for request in self.requests if request.path.startswith(INQUIRY)]

    @property
    def inquired_days(self) -> list[str]:
        return [parse_qs(urlsplit(each.path).query)["transactionDate"][0] for each in self.inquiries]

    def connect(self, shop: Shop, biller_id: str = BILLER) -> str:
        """Connect a live shop to this bank. Returns the secret of its notification endpoint."""
        credentials = self.config.credentials
        config = ConnectionConfig("scb", biller_id, reference3="PTF", credentials=credentials)
        _, secret = bank_connections.connect(merchant_id=shop.merchant.id, config=config, now=clock.now())
        shop.merchant.refresh_from_db()
        return str(secret)


def shop_at(bank: FakeScb) -> Shop:
    """A live merchant of the bank."""
    shop = open_shop("Somtam House", mode="live")
    bank.connect(shop)
    return shop
