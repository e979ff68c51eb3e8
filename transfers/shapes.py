from typing import Any

from core.thaibanks import Bank


def bank_object(bank: Bank) -> dict[str, Any]:
    shortest, longest = bank.digits
    return {
        "bank_code": bank.code,
        "short_name": bank.alias.upper(),
        "name": bank.name,
        "name_th": bank.name_th,
        "account_digits": {"min": shortest, "max": longest},
    }
