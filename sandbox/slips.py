"""The slip that the payer's banking app shows: its mini-QR as text and as a picture."""

from dataclasses import dataclass

from qrcode.constants import ERROR_CORRECT_M
from qrcode.main import QRCode

from core.slips import Slip, slip_payload
from sandbox.models import SandboxPayment

QUIET_ZONE = 4


@dataclass(frozen=True, slots=True)
class MiniQr:
    """payload: what a scanner reads. size: modules on a side. path: the dark ones, as an SVG path."""

    payload: str
    size: int
    path: str


def mini_qr(payment: SandboxPayment) -> MiniQr:
    payload = slip_payload(Slip(payment.payer_bank_code, payment.slip_reference))
    symbol = QRCode(error_correction=ERROR_CORRECT_M, border=QUIET_ZONE)
    symbol.add_data(payload)
    rows: list[list[bool]] = symbol.get_matrix()
    dark = (f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark)
    return MiniQr(payload, len(rows), "".join(dark))
