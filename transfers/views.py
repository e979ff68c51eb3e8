from rest_framework.request import Request

from core.thai import thaibanks
from merchants.api import MerchantViewSet
from transfers import openapi as docs
from transfers.shapes import BankList, bank_object


class BankViewSet(MerchantViewSet):
    """The banks that money can be sent to."""

    @docs.list_banks
    def list(self, request: Request) -> BankList:
        return {"banks": [bank_object(each) for each in thaibanks.BANKS]}
