"""What each field of a payment code is called, and which values it may have."""

Rule = tuple[str, str, str]  # level, the pattern of a right value, and what to say of another

THAI_AID = "A00000067701"
NAMES = {
    "00": "Payload format", "00.00": "Application id", "00.01": "Sending bank", "00.02": "Transfer reference",
    "01": "Point of initiation", "29": "PromptPay transfer", "29.01": "Mobile phone",
    "29.02": "National or tax id", "29.03": "E-wallet id", "29.04": "Bank account", "29.05": "One-time code",
    "30": "Bill payment", "30.01": "Biller id", "30.02": "Reference 1", "30.03": "Reference 2",
    "31": "Payment innovation", "31.01": "Bank code", "31.02": "Reference 1", "31.04": "Reference 2",
    "52": "Merchant category", "53": "Currency", "54": "Amount", "55": "Tip or fee", "56": "Fixed fee",
    "57": "Fee in percent", "58": "Country", "59": "Merchant name", "60": "City", "61": "Postal code",
    "62": "Additional data", "62.01": "Bill number", "62.02": "Mobile number", "62.03": "Store",
    "62.04": "Loyalty number", "62.05": "Reference", "62.06": "Customer", "62.07": "Terminal (reference 3)",
    "62.08": "Purpose", "62.09": "Asked of the customer", "62.10": "Tax id of the merchant",
    "62.11": "Channel", "63": "Checksum", "64": "Merchant in the local language", "64.00": "Language",
    "64.01": "Merchant name", "64.02": "City", "80": "VAT", "81": "Message", "91": "Checksum of a slip",
    "biller": "Biller id", "amount": "Amount in satang",
} | {f"{tag}.00": "Application id" for tag in range(26, 52)}  # fmt: skip
# Application ids begin so; card schemes have tags of their own.
SCHEMES = {
    "SG.PAYNOW": "PayNow (Singapore)", "SG.COM.NETS": "NETS (Singapore)", "COM.QRIS.WWW": "QRIS (Indonesia)",
    "ID.CO.QRIS.WWW": "QRIS (Indonesia)", "A0000006150001": "DuitNow (Malaysia)",
    "A000000727": "VietQR (Vietnam)", "BR.GOV.BCB.PIX": "Pix (Brazil)", "HK.COM.HKICL": "FPS (Hong Kong)",
    "COM.P2PQRPAY": "QR Ph (Philippines)", "PH.PPMI.P2M": "QR Ph (Philippines)", "02": "Visa", "03": "Visa",
    "04": "Mastercard", "05": "Mastercard", "09": "Discover", "10": "Discover", "11": "American Express",
    "12": "American Express", "13": "JCB", "14": "JCB", "15": "UnionPay", "16": "UnionPay",
}  # fmt: skip
BARCODE = ("biller", "reference 1", "reference 2", "amount")


def _rules(table: str) -> dict[str, list[Rule]]:
    """By tag. The first rule that a value breaks is told."""
    found: dict[str, list[Rule]] = {}
    for line in table.strip().splitlines():
        tag, level, pattern, message = line.split(maxsplit=3)
        for each in tag.split("|"):
            found.setdefault(each.replace("_", " "), []).append((level, pattern, message))
    return found


# Of all codes, of other parts of tag 62 (`additional`), and of the lines of a barcode.
RULES = _rules(r"""
00 error 01 The payload format must be 01, not {value}.
01 error 1[12] Tag 01 must be 11 (for many payments) or 12 (for one), not {value}.
52 error [0-9]{4} The merchant category must be 4 digits, not {value!r}.
53 error [0-9]{3} The currency must be its number, 764 for baht, not {value!r}.
54 error .{1,13} Tag 54 has {size} characters; at most 13 are allowed.
54 error [^,]* The amount {value!r} has a comma. Write 1500.00.
54 error [0-9]+(\.[0-9]*)?|\.[0-9]+ The amount {value!r} must be digits, with a dot before the decimals.
54 warning (?!0[0-9]).* The amount {value} begins with a zero.
54 warning .*[1-9].* The amount is zero. Leave tag 54 out if the payer should type it.
58 error .. The country must have 2 letters, not {value!r}.
59 error .{1,25} Tag 59 has {size} characters; at most 25 are allowed.
60 error .{1,15} Tag 60 has {size} characters; at most 15 are allowed.
61 error .{1,10} Tag 61 has {size} characters; at most 10 are allowed.
biller error [0-9]{15} The biller id must have 15 digits, not {value!r}.
reference_1 error .{1,20} Reference 1 must have 1 to 20 characters.
reference_2 error .{0,20} Reference 2 must have at most 20 characters.
additional error .{1,26} There are {size} characters; at most 26 are allowed.
amount error 0|[1-9][0-9]{0,9} The amount must be satang in digits, or 0 if the payer types it, not {value!r}.
""")
THAI_RULES = _rules(r"""
29.00 error A00000067701011[14] The application id must be A000000677010111 (or ...114), not {value!r}.
29.01 error [0-9]{13} The phone must have 13 digits: 0812345678 becomes 0066812345678. It is {value!r}.
29.01 warning 0066.* The phone {value} has another country than Thailand (0066).
29.01 warning (?!00660.*[1-9]).* The phone {value} keeps its leading zero: 0812345678 becomes 0066812345678.
29.02 error [0-9]{13} The national or tax id must have 13 digits, not {value!r}.
29.03 error [0-9]{15} The e-wallet id must have 15 digits, not {value!r}.
29.04 error [0-9]{3}.{1,40} The account must begin with the 3 digits of its bank, not {value!r}.
29.04 note (?!) Many apps cannot pay to an account number (29.04).
30.00 error A00000067701(0112|2006) The application id must be A000000677010112 (or ...2006), not {value!r}.
30.01 error [0-9]{13}|[0-9]{15} The biller id must have 15 digits, not {value!r}.
30.01 warning [0-9]{15} The biller id {value} has 13 digits. Banks issue 15: a tax id and a suffix.
30.02|30.03 error .{1,20} The reference has {size} characters; at most 20 are allowed.
30.02|30.03 warning [A-Z0-9]* The reference {value!r} should have only A-Z and 0-9: banks refuse others.
31.00 error A00000067701(0113|2004) The application id must be A000000677010113 (or ...2004), not {value!r}.
53 error 764 The currency is {value}. Thai codes are in baht: 764.
54 error [0-9]*(\.[0-9]{0,2})? The amount {value} has too many decimals. Baht have two.
54 warning [0-9]+(\.[0-9]{2})? The amount {value} should have two decimals: some apps refuse it otherwise.
54 warning 1?[0-9]{1,6}(\..*)?|2000000(\.0*)? The amount is above 2,000,000 THB, the largest transfer.
58 warning TH The country is {value}, not TH. Thai apps may refuse the code.
62.07 warning [A-Z0-9]{1,20} The reference {value!r} should be 1 to 20 of A-Z and 0-9: banks refuse others.
""")

# Of all fields together, as `;00;01:12;30;30.00;63;`: the tag of the place, or `-`, and a rule.
STRUCTURE = _rules(r"""
01 error (?!.*;01:).*|;00;01:.* Tag 01 must be the second field.
63 error (?!.*;63;.).* The checksum (tag 63) must be the last field.
- error .*;(0[2-9]|[1-4][0-9]|5[01]);.* Nobody to pay is named: there is no tag from 02 to 51.
- error .*;53;.* Tag 53 (currency) is missing: 5303764 for baht.
- error .*;58;.* Tag 58 (country) is missing: 5802TH for Thailand.
01 warning (?!.*;01:12;).*|.*;54;.* The code is for one payment (12), but has no amount. The payer types it.
01 note (?!.*;01:11;.*;54;).* It is for many payments (11) with an amount, which some apps let one change.
29 error .*;29\.00:.* Tag 29 needs its application id (29.00): A000000677010111.
29 error .*;29\.0[1-4];.* Tag 29 must name a payee: 01 phone, 02 id, 03 wallet or 04 account. It names nobody.
29 error (?!.*;29\.0[1-4];(.*;)?29\.0[1-4];).* Tag 29 must name one payee, and names several of 01 to 04.
29 error (?!.*;29\.00:0114;).*|.*;29\.05;.* A code that a customer shows needs a one-time code (29.05).
30 error .*;30\.00;.* Tag 30 needs its application id (30.00): A000000677010112.
30 error .*;30\.01;.* Tag 30 needs the biller id (30.01).
30 error .*;30\.02;.* Tag 30 needs reference 1 (30.02).
31 error .*;31\.00;.* Tag 31 needs its application id (31.00): A000000677010113.
""")
