"""Which banks there are, by code and by short name, and what their account numbers look like."""

import pytest

from core.thai import thaibanks

NAMED = [
    ("002", "002"),
    ("bbl", "002"),
    ("BBL", "002"),
    ("KBank", "004"),
    ("scb", "014"),
    ("ttb", "011"),
    ("tmb", "011"),
    ("076", "011"),
    ("KKP", "069"),
    ("098", "098"),
]
# The last two are of other scripts: Arabic digits, and the sign of kelvin, which becomes a k in lower case.
UNKNOWN = [
    *("", "2", "02", "0002", "000", "999", "005", "065", "tbank", " 002", "002 "),
    *("\u0660\u0660\u0662", "\u212abank"),
]
GOOD = [
    ("002", "1234567890"),
    ("scb", "0000000000"),
    ("030", "123456789012"),
    ("ghb", "123456789012"),
    ("tisco", "1234567890"),
    ("tisco", "12345678901234"),
    ("hsbc", "1234567890"),
    ("hsbc", "123456789012345"),
]
BAD = [
    ("002", ""),
    ("002", "123456789"),
    ("002", "12345678901"),
    ("002", "123-4-56789-0"),
    ("002", "123456789 "),
    ("002", "1234567890\n"),
    ("002", "\u0e51234567890"),
    ("002", "+123456789"),
    ("030", "1234567890"),
    ("tisco", "123456789012345"),
    ("hsbc", "123456789"),
    ("hsbc", "1234567890123456"),
    ("999", "1234567890"),
]


@pytest.mark.parametrize(("given", "code"), NAMED)
def test_bank_is_found_by_code_and_by_short_name(given: str, code: str) -> None:
    bank = thaibanks.find(given)
    assert bank is not None
    assert bank.code == code


def test_unknown_bank_is_not_found() -> None:
    for given in UNKNOWN:
        assert thaibanks.find(given) is None


def test_bank_codes_and_short_names_are_unique() -> None:
    codes, aliases = [bank.code for bank in thaibanks.BANKS], [bank.alias for bank in thaibanks.BANKS]
    assert all(len(code) == 3 and code.isdigit() for code in codes)
    assert all(alias.isalpha() and alias.islower() for alias in aliases)
    assert len({*codes, *aliases}) == 2 * len(thaibanks.BANKS)


@pytest.mark.parametrize(("code", "account"), GOOD)
def test_account_number_of_the_right_length_for_the_bank_is_accepted(code: str, account: str) -> None:
    thaibanks.check_account(code, account)


def test_invalid_account_number_is_refused_and_not_in_the_error() -> None:
    for code, account in BAD:
        with pytest.raises(ValueError, match=r"bank does not exist|digits") as refusal:
            thaibanks.check_account(code, account)
        assert not account or account.strip() not in str(refusal.value)
