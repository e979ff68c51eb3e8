"""Banks in Thailand to which money can be sent, and the lengths of their account numbers.

Codes are the Bank of Thailand's, short names those that banks and gateways use. 005 (Royal Bank of Scotland)
and 065 (Thanachart, merged into ttb) are left out, because they have no accounts any more.
"""

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

MIN_DIGITS, MAX_DIGITS = 10, 15
_DIGITS = re.compile(rf"[0-9]{{{MIN_DIGITS},{MAX_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Bank:
    """`name_th` is the Thai name. `digits`: the lengths of an account number, shortest and longest."""

    code: str
    alias: str
    name: str
    name_th: str
    digits: tuple[int, int] = (MIN_DIGITS, MAX_DIGITS)


_TEN, _TWELVE = (10, 10), (12, 12)
BANKS = [
    Bank("001", "bot", "Bank of Thailand", "ธนาคารแห่งประเทศไทย"),
    Bank("002", "bbl", "Bangkok Bank", "ธนาคารกรุงเทพ", _TEN),
    Bank("004", "kbank", "Kasikorn Bank", "ธนาคารกสิกรไทย", _TEN),
    Bank("006", "ktb", "Krungthai Bank", "ธนาคารกรุงไทย", _TEN),
    Bank("008", "jpm", "J.P. Morgan", "ธนาคารเจพีมอร์แกน เชส"),
    Bank("010", "mufg", "Bank of Tokyo-Mitsubishi UFJ", "ธนาคารเอ็มยูเอฟจี"),
    Bank("011", "ttb", "TMBThanachart Bank", "ธนาคารทหารไทยธนชาต", _TEN),
    Bank("014", "scb", "Siam Commercial Bank", "ธนาคารไทยพาณิชย์", _TEN),
    Bank("017", "citi", "Citibank", "ธนาคารซิตี้แบงก์", _TEN),
    Bank("018", "smbc", "Sumitomo Mitsui Banking Corporation", "ธนาคารซูมิโตโม มิตซุย แบงกิ้ง คอร์ปอเรชั่น"),
    Bank("020", "sc", "Standard Chartered (Thai)", "ธนาคารสแตนดาร์ดชาร์เตอร์ด (ไทย)"),
    Bank("022", "cimb", "CIMB Thai Bank", "ธนาคารซีไอเอ็มบี ไทย", _TEN),
    Bank("024", "uob", "United Overseas Bank (Thai)", "ธนาคารยูโอบี", _TEN),
    Bank("025", "bay", "Bank of Ayudhya (Krungsri)", "ธนาคารกรุงศรีอยุธยา", _TEN),
    Bank("026", "mega", "Mega International Commercial Bank", "ธนาคารเมกะ สากลพาณิชย์"),
    Bank("027", "boa", "Bank of America", "ธนาคารแห่งอเมริกา"),
    Bank("028", "cacib", "Crédit Agricole", "ธนาคารเครดิต อะกริโคล"),
    Bank("030", "gsb", "Government Savings Bank", "ธนาคารออมสิน", _TWELVE),
    Bank("031", "hsbc", "Hongkong and Shanghai Banking Corporation", "ธนาคารฮ่องกงและเซี่ยงไฮ้แบงกิ้งคอร์ปอเรชั่น"),
    Bank("032", "db", "Deutsche Bank", "ธนาคารดอยซ์แบงก์"),
    Bank("033", "ghb", "Government Housing Bank", "ธนาคารอาคารสงเคราะห์", _TWELVE),
    Bank(
        "034",
        "baac",
        "Bank for Agriculture and Agricultural Cooperatives",
        "ธนาคารเพื่อการเกษตรและสหกรณ์การเกษตร",
        _TWELVE,
    ),
    Bank("035", "exim", "Export-Import Bank of Thailand", "ธนาคารเพื่อการส่งออกและนำเข้าแห่งประเทศไทย"),
    Bank("039", "mb", "Mizuho Bank", "ธนาคารมิซูโฮ"),
    Bank("045", "bnp", "BNP Paribas", "ธนาคารบีเอ็นพี พารีบาส์"),
    Bank("066", "ibank", "Islamic Bank of Thailand", "ธนาคารอิสลามแห่งประเทศไทย", _TEN),
    Bank("067", "tisco", "Tisco Bank", "ธนาคารทิสโก้", (10, 14)),
    Bank("069", "kk", "Kiatnakin Bank", "ธนาคารเกียรตินาคินภัทร", _TEN),
    Bank("070", "icbc", "Industrial and Commercial Bank of China (Thai)", "ธนาคารไอซีบีซี (ไทย)"),
    Bank("071", "tcrb", "Thai Credit Retail Bank", "ธนาคารไทยเครดิต"),
    Bank("073", "lhb", "Land and Houses Bank", "ธนาคารแลนด์ แอนด์ เฮ้าส์"),
    Bank("098", "sme", "SME Development Bank", "ธนาคารพัฒนาวิสาหกิจขนาดกลางและขนาดย่อมแห่งประเทศไทย"),
]
# One gateway uses 076 for ttb since the merger. The name before was tmb.
_OTHER_NAMES = {
    "076": "011", "tmb": "011", "kkp": "069", "cimbt": "022", "uobt": "024", "icbct": "070", "bofa": "027",
    "mizuho": "039", "stanchart": "020", "krungsri": "025", "lh": "073",
}  # fmt: skip
_BY_CODE = {bank.code: bank for bank in BANKS}
_BY_NAME = (
    _BY_CODE
    | {bank.alias: bank for bank in BANKS}
    | {also: _BY_CODE[code] for also, code in _OTHER_NAMES.items()}
)


def find(code_or_alias: str) -> Bank | None:
    """The bank of a 3-digit code or a short name in any case; None if there is none."""
    # Some letters of other scripts become one of ours in lower case.
    return _BY_NAME.get(code_or_alias.lower()) if code_or_alias.isascii() else None


def check_account(code: str, account: str) -> None:
    """Check an account number at the bank `code` (or alias). Raises ValueError without the number."""
    bank = find(code)
    if bank is None:
        raise ValueError("this bank does not exist")
    shortest, longest = bank.digits
    if not _DIGITS.fullmatch(account) or not shortest <= len(account) <= longest:
        length = str(shortest) if shortest == longest else f"{shortest}-{longest}"
        text = _("an account at %(bank)s has %(length)s digits")
        raise ValueError(text % {"bank": bank.name, "length": length})
