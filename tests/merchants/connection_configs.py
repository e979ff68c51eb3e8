"""Connection configs of live merchants."""

from merchants.bank_connections import ConnectionConfig
from tests.banks import fake_bbl

BILLER_ID = "010753600037453"
SECRET = "the-application-secret-of-a-shop"
SCB_CREDENTIALS: dict[str, object] = {"application_key": "l7f329b707a0714f", "application_secret": SECRET}
SCB_CONFIG = ConnectionConfig(
    bank="scb", biller_id=BILLER_ID, reference2="SHOP7", reference3="PTF", credentials=SCB_CREDENTIALS
)
BBL_CONFIG = ConnectionConfig(bank="bbl", biller_id=BILLER_ID, credentials=fake_bbl.credentials())
