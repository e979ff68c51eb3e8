"""What each field of a payment code is called, and which values it may have."""

import re
from collections.abc import Callable, Iterator, Mapping

Checked = tuple[str, str, str | None]
"""level, message and tag of a finding."""

THAI_AID = "A00000067701"
TRANSFER, SHOWN_BY_PAYER = "A000000677010111", "A000000677010114"
BILL, CROSS_BORDER = "A000000677010112", "A000000677012006"
INNOVATION = ("A000000677010113", "A000000677012004")
# The largest PromptPay transfer, in baht.
MAX_BAHT = 2_000_000

NAMES = {
    "00": "Payload format",
    "00.00": "Application id",
    "00.01": "Sending bank",
    "00.02": "Transfer reference",
    "01": "Point of initiation",
    "29": "PromptPay transfer",
    "29.00": "Application id",
    "29.01": "Mobile phone",
    "29.02": "National or tax id",
    "29.03": "E-wallet id",
    "29.04": "Bank account",
    "29.05": "One-time code",
    "30": "Bill payment",
    "30.00": "Application id",
    "30.01": "Biller id",
    "30.02": "Reference 1",
    "30.03": "Reference 2",
    "31": "Payment innovation",
    "31.00": "Application id",
    "31.01": "Bank code",
    "31.02": "Reference 1",
    "31.04": "Reference 2",
    "52": "Merchant category",
    "53": "Currency",
    "54": "Amount",
    "55": "Tip or fee",
    "56": "Fixed fee",
    "57": "Fee in percent",
    "58": "Country",
    "59": "Merchant name",
    "60": "City",
    "61": "Postal code",
    "62": "Additional data",
    "62.01": "Bill number",
    "62.02": "Mobile number",
    "62.03": "Store",
    "62.04": "Loyalty number",
    "62.05": "Reference",
    "62.06": "Customer",
    "62.07": "Terminal (reference 3)",
    "62.08": "Purpose",
    "62.09": "Asked of the customer",
    "62.10": "Tax id of the merchant",
    "62.11": "Channel",
    "63": "Checksum",
    "64": "Merchant in the local language",
    "64.00": "Language",
    "64.01": "Merchant name",
    "64.02": "City",
    "80": "VAT",
    "81": "Message",
    "91": "Checksum of a slip",
}
BARCODE_NAMES = {
    "biller": "Biller id",
    "reference 1": "Reference 1",
    "reference 2": "Reference 2",
    "amount": "Amount in satang",
}
CURRENCIES = {
    "036": "AUD", "104": "MMK", "116": "KHR", "156": "CNY", "344": "HKD", "356": "INR", "360": "IDR",
    "392": "JPY",
    "410": "KRW", "418": "LAK", "458": "MYR", "608": "PHP", "702": "SGD", "704": "VND", "826": "GBP",
    "840": "USD", "901": "TWD", "978": "EUR", "986": "BRL",
}  # fmt: skip
SCHEMES = {
    "SG.PAYNOW": "PayNow (Singapore)",
    "SG.COM.NETS": "NETS (Singapore)",
    "COM.QRIS.WWW": "QRIS (Indonesia)",
    "ID.CO.QRIS.WWW": "QRIS (Indonesia)",
    "A0000006150001": "DuitNow (Malaysia)",
    "A000000727": "VietQR (Vietnam)",
    "BR.GOV.BCB.PIX": "Pix (Brazil)",
    "HK.COM.HKICL": "FPS (Hong Kong)",
    "COM.P2PQRPAY": "QR Ph (Philippines)",
    "PH.PPMI.P2M": "QR Ph (Philippines)",
}
CARD_SCHEMES = {
    ("02", "03"): "Visa",
    ("04", "05"): "Mastercard",
    ("09", "10"): "Discover",
    ("11", "12"): "American Express",
    ("13", "14"): "JCB",
    ("15", "16"): "UnionPay",
}

AMOUNT = re.compile(r"[0-9]+(\.[0-9]{2})?")
REFERENCE = re.compile("[A-Z0-9]{1,20}")
# The most characters of a text.
LONGEST = {"59": 25, "60": 15, "61": 10, "30.02": 20, "30.03": 20, "54": 13}
LONGEST_ADDITIONAL = 26
SIZES = {"52": 4, "53": 3, "58": 2}


def name_of(tag: str) -> str:
    """What a tag is called."""
    if tag in NAMES:
        return NAMES[tag]
    top, _, part = tag.partition(".")
    if "02" <= top <= "51":
        return "Application id" if part == "00" else "Account of a scheme"
    return "Unknown field"


def is_template(tag: str) -> bool:
    """Whether a field holds fields. Accounts up to 25 are plain numbers of card schemes."""
    return "26" <= tag <= "51" or tag in {"62", "64", "80"}


def scheme_of(values: Mapping[str, str]) -> str:
    """The foreign scheme of a code, as far as it is known; else an empty text."""
    for tag, value in values.items():
        if tag.endswith(".00"):
            found = next((name for aid, name in SCHEMES.items() if value.upper().startswith(aid)), "")
            if found:
                return found
    return next((name for tags, name in CARD_SCHEMES.items() if any(tag in values for tag in tags)), "")


def check_text(values: Mapping[str, str], *, is_thai: bool) -> Iterator[Checked]:
    """The faults of all values."""
    for check in COMMON_CHECKS:
        yield from check(values)
    if not is_thai:
        yield from _check_foreign(values)
        return
    for check in THAI_CHECKS:
        yield from check(values)


def check_barcode_line(name: str, value: str) -> Iterator[tuple[str, str]]:
    """The faults of a line of a barcode."""
    if name == "biller" and not re.fullmatch("[0-9]{15}", value):
        yield "error", f"The biller id must have 15 digits, not {value!r}."
    if name == "reference 1" and not re.fullmatch(".{1,20}", value):
        yield "error", "Reference 1 must have 1 to 20 characters."
    if name == "reference 2" and len(value) > 20:
        yield "error", "Reference 2 must have at most 20 characters."
    if name == "amount" and not re.fullmatch("0|[1-9][0-9]{0,9}", value):
        yield "error", f"The amount must be satang in digits, or 0 if the payer types it, not {value!r}."


def _check_format(values: Mapping[str, str]) -> Iterator[Checked]:
    if values.get("00", "01") != "01":
        yield "error", f"The payload format must be 01, not {values['00']}.", "00"
    initiation = values.get("01")
    if initiation is not None and initiation not in {"11", "12"}:
        yield "error", f"Tag 01 must be 11 (for many payments) or 12 (for one), not {initiation}.", "01"
    if initiation == "12" and "54" not in values:
        yield "warning", "The code is for one payment (12), but has no amount. The payer types it.", "01"
    if initiation == "11" and "54" in values:
        yield (
            "note",
            "The code is for many payments (11) and fixes the amount. Some apps let the payer change it.",
            "01",
        )


def _check_sizes(values: Mapping[str, str]) -> Iterator[Checked]:
    for tag, value in values.items():
        longest = LONGEST.get(tag, LONGEST_ADDITIONAL if tag.startswith("62.") else None)
        if longest is not None and len(value) > longest:
            yield "error", f"Tag {tag} has {len(value)} characters; at most {longest} are allowed.", tag
        if tag in SIZES and len(value) != SIZES[tag]:
            yield "error", f"Tag {tag} must have {SIZES[tag]} characters, not {len(value)}.", tag
    if "52" in values and not _is_digits(values["52"]):
        yield "error", f"The merchant category must be 4 digits, not {values['52']!r}.", "52"


def _check_letters(values: Mapping[str, str]) -> Iterator[Checked]:
    for tag, value in values.items():
        if not value.isascii() and not tag.startswith("64") and "." not in tag:
            advice = " A Thai name belongs into tag 64." if tag in {"59", "60"} else ""
            yield "error", f"Tag {tag} has characters beyond ASCII.{advice}", tag


def _check_currency(values: Mapping[str, str]) -> Iterator[Checked]:
    currency = values.get("53", "764")
    if not _is_digits(currency):
        yield "error", f"The currency must be its number, 764 for baht, not {currency!r}.", "53"


def _check_amount(values: Mapping[str, str]) -> Iterator[Checked]:
    amount = values.get("54")
    if amount is None:
        return
    if "," in amount:
        yield "error", f"The amount {amount!r} has a comma. Write 1500.00.", "54"
    elif not re.fullmatch(r"[0-9]+(\.[0-9]*)?|\.[0-9]+", amount, re.ASCII):
        yield "error", f"The amount {amount!r} must be digits, with a dot before the decimals.", "54"
    else:
        yield from _check_digits_of(amount, values.get("53", "764"))


def _check_digits_of(amount: str, currency: str) -> Iterator[Checked]:
    whole, _, rest = amount.partition(".")
    if len(rest) > 2 and currency == "764":
        yield "error", f"The amount {amount} has {len(rest)} decimals. Baht have two.", "54"
    elif currency == "764" and not AMOUNT.fullmatch(amount):
        yield "warning", f"The amount {amount} should have two decimals: some apps refuse it otherwise.", "54"
    if len(whole) > 1 and whole.startswith("0"):
        yield "warning", f"The amount {amount} begins with a zero.", "54"
    if not amount.strip("0."):
        yield "warning", "The amount is zero. Leave tag 54 out if the payer should type it.", "54"
    if currency == "764" and (int(whole or 0), rest.rstrip("0")) > (MAX_BAHT, ""):
        yield "warning", f"The amount is above {MAX_BAHT:,} THB, the largest PromptPay transfer.", "54"


def _check_country(values: Mapping[str, str]) -> Iterator[Checked]:
    country, currency = values.get("58", "TH"), values.get("53", "764")
    if country != "TH":
        yield "warning", f"The country is {country}, not TH. Thai apps may refuse the code.", "58"
    if _is_digits(currency) and currency != "764":
        shown = CURRENCIES.get(currency, "unknown")
        yield "error", f"The currency is {currency} ({shown}). Thai codes are in baht: 764.", "53"


def _check_transfer(values: Mapping[str, str]) -> Iterator[Checked]:
    if "29" not in values:
        return
    yield from _check_aid(values, "29", (TRANSFER, SHOWN_BY_PAYER))
    payees = [tag for tag in ("29.01", "29.02", "29.03", "29.04") if tag in values]
    if len(payees) != 1:
        said = "nobody" if not payees else "several: " + ", ".join(payees)
        yield (
            "error",
            f"Tag 29 must name one payee (01 phone, 02 id, 03 wallet or 04 account). It names {said}.",
            "29",
        )
    if values.get("29.00") == SHOWN_BY_PAYER and "29.05" not in values:
        yield "error", "A code that a customer shows needs a one-time code (29.05).", "29"
    for tag, check in PAYEES.items():
        if tag in values:
            yield from check(values[tag])


def _check_phone(value: str) -> Iterator[Checked]:
    if re.fullmatch(r"0066[1-9][0-9]{8}", value):
        return
    tag, digits = "29.01", re.sub(r"\D", "", value)
    advice = "0812345678 becomes 0066812345678."
    if re.fullmatch("0[0-9]{8,9}", digits):
        right = f"0066{digits[1:]}".ljust(13, "?")
        yield "error", f"The phone {value!r} is in its national form. It must be {right}.", tag
    elif re.fullmatch("00660[0-9]+", value) and len(value) >= 13 and value != "0066000000000":
        yield "warning", f"The phone {value} keeps its leading zero after 66. {advice}", tag
    elif not re.fullmatch("[0-9]{13}", value):
        yield "error", f"The phone must have 13 digits, with 0066 in front: {advice} It is {value!r}.", tag
    elif not value.startswith("0066"):
        yield "warning", f"The phone {value} has another country than Thailand (0066).", tag


def _check_id(value: str) -> Iterator[Checked]:
    if not re.fullmatch("[0-9]{13}", value):
        yield "error", f"The national or tax id must have 13 digits, not {value!r}.", "29.02"
    elif not has_check_digit(value):
        yield "warning", f"The check digit of the id {value} is wrong. Is it mistyped?", "29.02"


def _check_wallet(value: str) -> Iterator[Checked]:
    if not re.fullmatch("[0-9]{15}", value):
        yield "error", f"The e-wallet id must have 15 digits, not {value!r}.", "29.03"


def _check_account(value: str) -> Iterator[Checked]:
    if not re.fullmatch("[0-9]{3}.{1,40}", value):
        yield "error", f"The account must begin with the 3 digits of its bank, not {value!r}.", "29.04"
    else:
        yield "note", "Many apps cannot pay to an account number (29.04).", "29.04"


def _check_bill(values: Mapping[str, str]) -> Iterator[Checked]:
    if "30" not in values:
        return
    yield from _check_aid(values, "30", (BILL, CROSS_BORDER))
    yield from _check_biller(values.get("30.01"))
    if "30.02" not in values:
        yield "error", "Tag 30 needs reference 1 (30.02).", "30"
    for tag in ("30.02", "30.03", "62.07"):
        value = values.get(tag, "A")
        if len(value) <= LONGEST_ADDITIONAL and not REFERENCE.fullmatch(value):
            text = f"The reference {value!r} should be 1 to 20 of A-Z and 0-9: banks refuse others."
            yield "warning", text, tag


def _check_biller(value: str | None) -> Iterator[Checked]:
    if value is None:
        yield "error", "Tag 30 needs the biller id (30.01).", "30"
    elif re.fullmatch("[0-9]{13}", value):
        yield (
            "warning",
            f"The biller id {value} has 13 digits. Banks issue 15: a tax id and a suffix.",
            "30.01",
        )
    elif not re.fullmatch("[0-9]{15}", value):
        yield "error", f"The biller id must have 15 digits, not {value!r}.", "30.01"


def _check_innovation(values: Mapping[str, str]) -> Iterator[Checked]:
    if "31" in values:
        yield from _check_aid(values, "31", INNOVATION)


def _check_aid(values: Mapping[str, str], tag: str, allowed: tuple[str, ...]) -> Iterator[Checked]:
    found = values.get(f"{tag}.00")
    if found is None:
        yield "error", f"Tag {tag} needs its application id ({tag}.00): {allowed[0]}.", tag
    elif found not in allowed:
        yield (
            "error",
            f"The application id of tag {tag} must be {' or '.join(allowed)}, not {found!r}.",
            f"{tag}.00",
        )


def _check_foreign(values: Mapping[str, str]) -> Iterator[Checked]:
    scheme = scheme_of(values) or "an unknown scheme"
    currency = values.get("53", "")
    money = CURRENCIES.get(currency, currency or "no currency")
    yield "warning", f"This is no Thai code: {scheme}, country {values.get('58', 'missing')}, {money}.", None


def has_check_digit(value: str) -> bool:
    """Whether the last of 13 digits of a Thai id is the check digit of the others."""
    total = sum(int(digit) * (13 - place) for place, digit in enumerate(value[:12]))
    return (11 - total % 11) % 10 == int(value[12])


def crc_modbus(text: str) -> int:
    """CRC-16/MODBUS, a mistake that is seen in practice."""
    return _reflected_crc(text, 0xFFFF)


def crc_arc(text: str) -> int:
    """CRC-16/ARC, another one."""
    return _reflected_crc(text, 0)


def _reflected_crc(text: str, crc: int) -> int:
    for byte in text.encode(errors="surrogatepass"):
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def _is_digits(value: str) -> bool:
    return value.isascii() and value.isdigit()


PAYEES = {
    "29.01": _check_phone,
    "29.02": _check_id,
    "29.03": _check_wallet,
    "29.04": _check_account,
}
Check = Callable[[Mapping[str, str]], Iterator[Checked]]
COMMON_CHECKS: tuple[Check, ...] = (
    _check_format,
    _check_sizes,
    _check_letters,
    _check_currency,
    _check_amount,
)
THAI_CHECKS: tuple[Check, ...] = (_check_country, _check_transfer, _check_bill, _check_innovation)
