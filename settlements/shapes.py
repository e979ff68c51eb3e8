from datetime import datetime
from typing import Annotated, TypedDict

from core import money
from core.clock import iso, iso_or_none
from core.http.objects import AmountDisplay, Currency, Instant, SettlementId, one_of, satang, up_to
from settlements.models import Settlement, SettlementStatus


class SettlementObject(TypedDict):
    """What an acquirer transfers for your card payments, in one transfer."""

    settlement_id: SettlementId
    acquirer: Annotated[str, up_to(20)]
    status: Annotated[
        str,
        one_of(SettlementStatus),
        "`late`: it should have arrived. `differs`: it arrived, and an amount is not the expected one.",
    ]
    gross: Annotated[int, satang(0), "Satang received by its payments."]
    fee: Annotated[int, satang(0), "Satang: the fees of its payments."]
    fee_vat: Annotated[int, satang(0), "Satang: the VAT of these fees."]
    net: Annotated[int, satang(0), "Satang that your balance gets."]
    net_display: AmountDisplay
    currency: Currency
    payments: Annotated[int, satang(1), "How many payments: list them by `GET /payments?settlement_id=`."]
    expected_at: Annotated[Instant, "When it arrives at the latest."]
    arrived_at: Annotated[Instant | None, "Null until then."]
    created_at: Instant


def settlement_object(settlement: Settlement, now: datetime) -> SettlementObject:
    return {
        "settlement_id": settlement.id,
        "acquirer": settlement.transfer.acquirer,
        "status": settlement.status_at(now),
        "gross": settlement.gross_amount,
        "fee": settlement.fee,
        "fee_vat": settlement.fee_vat,
        "net": settlement.net_amount,
        "net_display": money.with_code(settlement.net_amount),
        "currency": money.CURRENCY,
        "payments": settlement.payment_count,
        "expected_at": iso(settlement.expected_at),
        "arrived_at": iso_or_none(settlement.arrived_at),
        "created_at": iso(settlement.created_at),
    }
