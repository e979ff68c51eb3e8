"""The public page of the signed days of a merchant that chose it. Without the choice it looks like none."""

from datetime import datetime, timedelta
from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from core import clock, dates, errors, ids
from core.errors import ApiError
from core.http import api, client_addresses, rate_limits, responses
from merchants import payer_pages
from merchants.models import Merchant
from operations.audit.daily_close import signing
from operations.models import ProofDay
from qrcodes.errors import TooManyPageRequests
from qrcodes.payment_page import RATE

DAYS = 30
CACHED = {"Cache-Control": "public, max-age=300", "Vary": "Accept-Language"}


@api.get_or_head_only
def page(request: HttpRequest, merchant_id: str) -> HttpResponse:
    """The newest day, or that of `day`, and a line for each of the days before it."""
    with translation.override(payer_pages.language_of(request)):
        try:
            merchant, proofs = _find(request, merchant_id)
        except ApiError as error:
            return payer_pages.refuse(request, "operations/no_proof.html", error)
        context: dict[str, Any] = {"state": "proof", "days": [_shown(each) for each in proofs]}
        if day := request.GET.get("day"):
            context["languages"] = payer_pages.language_links(day=day)
        response = payer_pages.respond(request, "operations/proof.html", context, merchant=merchant)
        response.headers["Cache-Control"], response.headers["Vary"] = CACHED.values()
        return response


@api.get_or_head_only
def document(request: HttpRequest, merchant_id: str) -> HttpResponse:
    """The signed text of the newest day, or of `day`, as `thaiqr verify` reads it."""
    try:
        _merchant, proofs = _find(request, merchant_id)
    except ApiError as error:
        return api.error_response(error, request)
    for day in proofs:
        signed = {"body": day.body, "signature": day.signature, "public_key": day.close.public_key}
        return HttpResponse(orjson.dumps(signed), content_type=responses.JSON, headers=CACHED)
    return api.not_found(request)


def _find(request: HttpRequest, merchant_id: str) -> tuple[Merchant, list[ProofDay]]:
    """Its days, the newest first. Raises TooManyPageRequests, PathNotFound."""
    network = client_addresses.network_of(client_addresses.address_of(request), ipv6_bits=64)
    rate_limits.check(f"payment-page:{network}", RATE, TooManyPageRequests)
    chosen = Merchant.objects.filter(shows_proof=True, suspended_at=None, moved_at=None)
    merchant = chosen.filter(pk=merchant_id).first() if ids.looks_right(merchant_id, "mch_") else None
    found = ProofDay.objects.filter(merchant_id=merchant and merchant.pk).order_by("-day")
    try:
        if day := request.GET.get("day"):
            found = found.filter(day__lte=found.get(day=dates.day(day)).day)
    except (ProofDay.DoesNotExist, ValueError):
        merchant = None
    if merchant is None:
        raise errors.PathNotFound
    return merchant, list(found.select_related("close").defer("close__body")[:DAYS])


def _shown(proof: ProofDay) -> dict[str, Any]:
    """What a signed day says, and its times in the words of the page."""
    said = orjson.loads(proof.body)
    times = said["close"] | (said["audit"] or {}) | (said["restore_drill"] or {})
    instants = {name for name in ("closed_at", "ended_at", "recorded_at", "reached") if name in times}
    spans = {name: seconds for name, seconds in (said["callbacks"] or {}).items() if name.endswith("_s")}
    return {
        "said": said,
        "day": clock.display_day_to_payer(dates.midnight(dates.day(said["day"]))),
        "p95": said["webhook"] and f"{said['webhook']['p95_ms'] / 1000:,.1f}",
        "fingerprint": signing.fingerprint(proof.close.public_key),
        **{each: clock.display_to_payer(datetime.fromisoformat(times[each])) for each in instants},
        **{name: clock.format_duration(timedelta(seconds=each or 0)) for name, each in spans.items()},
    }
