"""Slips as banks and wallets print them; the published ones of banks are in test_thaiqr."""

from datetime import date

import pytest
from hypothesis import given, strategies as st

from core.thai.slips import Slip, WalletSlip, parse_slip, slip_payload
from core.thai.tlv import BadPayload, add_checksum, field
from tests.thai_codes import wallet_slip

# Of the test vectors of thai-qr-payment.
WALLET = "00480002010102010203P2P0313TXN00012345670408250120249104b425"
BANK = "004000060000010103002021900021231231212000115102TH91049C30"


def test_published_slip_of_a_wallet_is_read() -> None:
    assert parse_slip(WALLET) == WalletSlip("P2P", "TXN0001234567", date(2024, 1, 25))
    assert wallet_slip().upper() == WALLET.upper()


def test_slip_checksum_ignores_case() -> None:
    assert parse_slip(WALLET[:-4] + "B425") == parse_slip(WALLET)
    assert parse_slip(BANK.replace("9C30", "9c30")) == parse_slip(BANK)


def test_slip_checksum_without_leading_zeros_is_accepted() -> None:
    by_zeros = {}
    for number in range(5_000):
        slip = Slip("014", f"TX{number}")
        payload = slip_payload(slip)
        by_zeros[4 - len(payload[-4:].lstrip("0"))] = (payload, slip)
    for zeros in (1, 2):
        payload, slip = by_zeros[zeros]
        assert parse_slip(payload[:-4] + payload[-4:].lstrip("0")) == slip


@pytest.mark.parametrize("payload", [BANK[:-1], BANK[:-4] + "0C30", BANK + "0", WALLET[:-1], BANK[:-4]])
def test_slip_with_wrong_checksum_is_refused(payload: str) -> None:
    with pytest.raises(BadPayload, match="checksum"):
        parse_slip(payload)


def test_invalid_slip_payload_is_refused() -> None:
    for payload in [
        slip_payload(Slip("14", "ABC")),
        slip_payload(Slip("014", "A" * 26)),
        slip_payload(Slip("014", "A-1")),
        wallet_slip(**{"00": "02"}),
        wallet_slip(**{"01": "02"}),
        wallet_slip(**{"02": ""}),
        wallet_slip(**{"02": "P 2 P"}),
        wallet_slip(**{"03": "TXN 1"}),
        wallet_slip(**{"03": "TXN-1"}),
        wallet_slip(**{"04": "31022024"}),
        wallet_slip(**{"04": "2501202"}),
        wallet_slip(**{"04": "25010000"}),
        wallet_slip(**{"04": "2501202٤"}),
        wallet_slip(**{"05": "more"}),
        add_checksum("", "91"),
        add_checksum(field("51", "TH"), "91"),
        add_checksum(field("00", BANK[4:44]), "91"),
        add_checksum(WALLET[:-8] + field("51", "TH"), "91"),
        add_checksum(BANK[:-14] + field("51", "LA"), "91"),
        add_checksum(BANK[:-8] + field("60", "BKK"), "91"),
    ]:
        with pytest.raises(BadPayload):
            parse_slip(payload)


letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@given(
    st.builds(
        Slip,
        st.text("0123456789", min_size=3, max_size=3),
        st.text(letters, min_size=1, max_size=25),
    )
)
def test_slip_payload_round_trip_returns_the_same_slip(slip: Slip) -> None:
    assert parse_slip(slip_payload(slip)) == slip
