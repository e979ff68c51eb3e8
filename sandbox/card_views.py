"""The sandbox bank's page of 3-D Secure: the payer authorises the charge of a test card, or refuses."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from core import clock, ids
from sandbox import cards
from sandbox.models import SandboxCharge
from sandbox.views import BankPage


class BankCard(BankPage):
    def get(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        charge = SandboxCharge.objects.filter(pk=_looking_right(charge_id)).first()
        if charge is None:
            raise Http404
        now = clock.now()
        context = {"charge": charge, "waits": charge.waits_at(now), "status": charge.status_at(now)}
        return render(request, "sandbox/card.html", context)

    def post(self, request: HttpRequest, charge_id: str) -> HttpResponse:
        """Then the browser goes back to the service, which has to ask what became of it."""
        is_authorized = "refuse" not in request.POST
        charge = cards.authorize(_looking_right(charge_id), is_authorized=is_authorized, now=clock.now())
        if charge is None:
            raise Http404
        return HttpResponseRedirect(charge.return_uri or request.path)


def _looking_right(charge_id: str) -> str:
    if not ids.looks_right(charge_id, "sbc_"):
        raise Http404
    return charge_id
