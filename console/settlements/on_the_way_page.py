"""The page *On the way*: what acquirers owe, their open transfers, and what a person must look at."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

import banks
from console.settlements import summaries
from core import clock
from core.console import sites
from merchants import modes
from payments.cards import ACQUIRERS
from settlements import on_the_way
from settlements.models import AcquirerTransfer

MAX_ROWS = 50


@permission_required("settlements.view_acquirertransfer", raise_exception=True)
def view(request: HttpRequest) -> HttpResponse:
    part = _part(ACQUIRERS[modes.chosen(request)])
    return sites.page(request, "admin/on_the_way.html", _("On the way"), part=part, now=clock.now())


def _part(acquirer: str) -> dict[str, Any]:
    owed, now = on_the_way.read(acquirer), clock.now()
    transfers = AcquirerTransfer.objects.filter(acquirer=acquirer).open().order_by("created_at")[:MAX_ROWS]
    questions = list(summaries.open_questions(acquirer=acquirer)[:MAX_ROWS])
    late = sum(each.expected_at < now for each in transfers)
    charges = reverse("admin:payments_cardcharge_changelist")
    return {
        "name": str(capfirst(banks.title(acquirer))),
        "summary": summaries.of_acquirer(owed, late, len(questions)),
        "owed": owed,
        "charges_url": f"{charges}?{urlencode({'on_the_way': acquirer})}",
        "transfers": list(transfers),
        "questions": questions,
    }
