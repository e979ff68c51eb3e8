"""Texts that adapters to banks declare, so that `manage.py messages` collects them."""

import banks


def texts() -> list[str]:
    """Titles, how each bank proves its identity, and what each credential is."""
    found: set[str] = set()
    for bank in banks.LIVE_BANKS.values():
        found |= {bank.title, bank.authentication_note, bank.reference3_help}
        found |= {credential.help for credential in bank.credential_fields}
    return sorted(found - {""})
