from django.http import HttpResponse
from rest_framework.request import Request

from core.http import api
from merchants.api import MerchantViewSet, merchant_of
from operations.evidence import files, openapi as docs, packs
from payments.models import Payment


class EvidenceViewSet(MerchantViewSet):
    @docs.retrieve
    def retrieve(self, request: Request, payment_id: str) -> HttpResponse:
        query = api.read_query(docs.retrieve, request)
        payment = Payment.objects.of(merchant_of(request)).find(payment_id)
        pack, merchant_id = packs.of_payment(payment.pk), payment.merchant_id
        return files.respond(pack, query["format"], payment.pk, key=merchant_id)
