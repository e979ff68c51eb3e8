"""What live merchants and their banks agreed on."""

from merchants.links import Terms
from tests.banks import bbl_stand_in

BILLER = "010753600037453"
SECRET = "the-application-secret-of-a-shop"
SCB: dict[str, object] = {"application_key": "l7f329b707a0714f", "application_secret": SECRET}
TERMS = Terms(bank="scb", biller_id=BILLER, reference2="SHOP7", reference3="PTF", credentials=SCB)
BBL = Terms(bank="bbl", biller_id=BILLER, credentials=bbl_stand_in.credentials())
