"""Payment codes and slips that the service reads and never writes."""

from core.thai.tlv import add_checksum, field


def altered(payload: str, was: str, becomes: str) -> str:
    """A payment code with another text in it, and the checksum for it."""
    assert was in payload
    return add_checksum(payload[:-8].replace(was, becomes), "63")


def wallet_slip(**changes: str) -> str:
    """The mini-QR of a transfer from a TrueMoney wallet, with other fields by tag. An empty one is absent."""
    shown = {"00": "01", "01": "01", "02": "P2P", "03": "TXN0001234567", "04": "25012024"} | changes
    transfer = "".join(field(tag, shown[tag]) for tag in sorted(shown) if shown[tag])
    return add_checksum(field("00", transfer), "91")
