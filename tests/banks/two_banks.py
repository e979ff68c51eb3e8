"""A merchant with two banks: Siam Commercial Bank, which can die, and Bangkok Bank as its stand-by."""

from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from core.clock import BANGKOK
from core.thai import thaiqr
from merchants.bank_connections import ConnectionConfig
from tests.banks import fake_scb
from tests.banks.fake_bbl import BILLER as BBL_BILLER, FakeBbl, push
from tests.banks.fake_scb import BILLER as SCB_BILLER, FakeScb
from tests.webhook_receiver import ReceivedRequest, Reply, Script

NO_RECORD = Reply(404, body=b'{"status": {"code": 1104, "description": "No record"}}')


class MortalScb(FakeScb):
    """It knows the codes that were paid by `pay`. While it is dead it breaks off each connection."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.is_dead = False
        self._paid: dict[str, dict[str, Any]] = {}

    def pay(self, code: dict[str, Any], at: datetime) -> None:
        paid_at = at.astimezone(BANGKOK).isoformat(timespec="seconds")
        reference1 = reference_of(code)
        fields = {
            "billPaymentRef1": reference1,
            "transactionId": f"T{reference1}",
            "payeeProxyId": SCB_BILLER,
        }
        self._paid[reference1] = fake_scb.transaction(transactionDateandTime=paid_at, **fields)

    def reply_to(self, request: ReceivedRequest) -> Script:
        if self.is_dead:
            return Reply(closes=True)
        if not request.path.startswith(fake_scb.INQUIRY):
            return super().reply_to(request)
        [reference1] = parse_qs(urlsplit(request.path).query)["reference1"]
        return fake_scb.success([self._paid[reference1]]) if reference1 in self._paid else NO_RECORD


def reference_of(code: dict[str, Any]) -> str:
    return str(thaiqr.parse(code["qr_data"]).reference1)


def biller_of(code: dict[str, Any]) -> str:
    return str(thaiqr.parse(code["qr_data"]).biller_id)


def pushed(code: dict[str, Any], at: datetime) -> bytes:
    """The notification of the stand-by that this code was paid."""
    local = at.astimezone(BANGKOK)
    fields = {"transDate": f"{local:%Y-%m-%d}", "transTime": f"{local:%H:%M:%S}"}
    return push(reference1=reference_of(code), bankRef=f"B{reference_of(code)}", **fields)


def standby_config(bank: FakeBbl) -> ConnectionConfig:
    return ConnectionConfig("bbl", BBL_BILLER, credentials=bank.config.credentials)
