"""The sandbox bank's API, as the OpenAPI document tells it."""

from core.errors import PathNotFound
from core.openapi import Operation, Shown, Tag
from sandbox.errors import TestModeOnly
from sandbox.scenarios import SCENARIOS
from sandbox.serializers import SandboxPaymentObject, SandboxPaymentRequest

create = Operation(
    name="pay_at_sandbox_bank",
    tag=Tag.SANDBOX,
    summary="Pay a QR code at the sandbox bank",
    description="Plays the customer's banking app for test keys. What the bank then tells the service, and "
    f"when, is the scenario's: {', '.join(f'`{name}`' for name in SCENARIOS)}.",
    body=Shown(
        SandboxPaymentRequest,
        {
            "qr_data": "00020101021230630016A000000677010112011509940001580400102207K2M9QX4T1B8V5N3C6ZD"
            "530376454071500.005802TH63044AFB",
            "scenario": "paid",
        },
    ),
    answer=Shown(
        SandboxPaymentObject,
        {
            "bank_transaction_id": "sbp_0oDFPXrTS4spMBBZozkykNHKN2t",
            "scenario": "paid",
            "accepted": True,
        },
    ),
    refusals=(PathNotFound, TestModeOnly),
)
