from rest_framework.request import Request

from core import thaibanks
from core.http import ApiResponse
from merchants.api import MerchantViewSet
from transfers import openapi as docs
from transfers.shapes import bank_object


class BankViewSet(MerchantViewSet):
    """The banks that money can be sent to."""

    @docs.list_banks
    def list(self, request: Request) -> ApiResponse:
        return ApiResponse.of({"banks": [bank_object(each) for each in thaibanks.BANKS]})
