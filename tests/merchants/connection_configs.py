"""Connection configs of live merchants, and the forms of the console with the same values."""

import banks
from merchants.bank_connections import ConnectionConfig
from tests.banks import fake_bbl

BILLER_ID = "010753600037453"
SECRET = "the-application-secret-of-a-shop"
SCB_CREDENTIALS: dict[str, object] = {"application_key": "l7f329b707a0714f", "application_secret": SECRET}
SCB_CONFIG = ConnectionConfig(
    bank="scb", biller_id=BILLER_ID, reference2="SHOP7", reference3="PTF", credentials=SCB_CREDENTIALS
)
BBL_CONFIG = ConnectionConfig(bank="bbl", biller_id=BILLER_ID, credentials=fake_bbl.credentials())
SCB_FORM = {
    "biller_id": BILLER_ID,
    "reference2": "SHOP7",
    "reference3": "PTF",
    "secret_application_key": "l7f329b707a0714f",
    "secret_application_secret": SECRET,
    "callers": "203.0.113.0/24\n198.51.100.7",
}
BBL_FORM = {
    "biller_id": BILLER_ID,
    **{
        f"{'secret' if each.is_secret else 'credential'}_{each.name}": str(
            fake_bbl.credentials().get(each.name, "")
        )
        for each in banks.LIVE_BANKS["bbl"].credential_fields
    },
}
