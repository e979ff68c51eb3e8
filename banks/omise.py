"""Opn Payments (Omise): cards by token. Amounts in satang; times in UTC.

Sources: docs.omise.co, pages charges-api, refunds-api, api-errors and api-versioning, and the
failure codes of its client libraries. A charge and a refund carry our id in their metadata, by which they are
found again, and as `Idempotency-Key`, which is kept there for a day; nothing is sent twice on its strength.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from banks import exchange
from banks.acquirers import Charge, Decline, Refusal, Said
from banks.base import Order, Word
from banks.exchange import Answer, NoAnswer, NotSent
from core import clock
from core.deadlines import Deadline

log = logging.getLogger("banks")
Json = dict[str, Any]
VERSION = "2019-05-29"
CONNECT_SECONDS, READ_SECONDS = 3.0, 10.0
# Their lists: rows on a page, and how many pages and seconds one search may take.
PAGE, MOST_PAGES, SEARCH_SECONDS = 100, 40, 8.0
# A charge is looked for in these spans, in seconds around the second in which we wrote it down, the likeliest
# first. A call begins within 30 s of that and takes 13; the rest allows for two clocks a minute apart. Spans
# overlap by a second, because their times have no fractions.
SPANS = ((-1, 4), (3, 15), (14, 60), (-60, 0), (59, 120))
LONGEST_URI = 1_000
OUR_ID = "order_id"  # the name of our id in their metadata

DECLINES: dict[str, Decline] = {
    "insufficient_fund": "insufficient_funds",
    "insufficient_balance": "insufficient_funds",
    "stolen_or_lost_card": "card_declined",
    "payment_rejected": "card_declined",
    "invalid_security_code": "card_declined",
    "failed_fraud_check": "card_declined",
    "invalid_account_number": "card_declined",
    "invalid_account": "card_declined",
    "payment_cancelled": "card_declined",
    "failed_processing": "processing_error",
    "timeout": "processing_error",
}
# Error objects in the place of a charge: nothing was tried.
REFUSALS: dict[str, Refusal] = {
    "used_token": "token_already_used",
    "invalid_card_token": "invalid_token_id",
    "invalid_card": "invalid_token_id",
    "not_found": "invalid_token_id",
}
# Theirs: it was tried, or stopped before the bank; the customer's card, or our account there, is at fault.
FAULTS: dict[str, Decline] = {
    "failed_fraud_check": "card_declined",
    "brand_not_supported": "card_declined",
}
ENDED_UNPAID = {"failed", "expired", "reversed"}
REFUNDED = {"closed", "voided"}


class TooManyRows(Exception):
    """A list is longer than one search may read: what was not found in it may still be there."""


class _Search:
    """How far one search has come, in pages and in time."""

    def __init__(self) -> None:
        self._pages = 0
        self._deadline = Deadline.after(SEARCH_SECONDS)

    def turn_page(self) -> None:
        """Raises TooManyRows."""
        self._pages += 1
        if self._pages > MOST_PAGES or self._deadline.is_past:
            raise TooManyRows


class Omise:
    seconds = CONNECT_SECONDS + READ_SECONDS + 2.0

    def __init__(self, secret_key: str, url: str) -> None:
        self._secret_key, self._url = secret_key, url

    def charge(self, charge: Charge) -> Said:
        asked = {
            "amount": charge.amount,
            "currency": "thb",
            "card": charge.token,
            "description": charge.order_id,
            "metadata": {OUR_ID: charge.order_id},
            "return_uri": charge.return_uri,
        }
        try:
            answer = self._ask("POST", "/charges", asked, key=charge.order_id)
        except NotSent:
            return Said("not_sent")
        except NoAnswer:
            return Said("unknown")
        return _said(answer.told) if answer.status == 200 else _refused(answer)

    def find(self, order_id: str, *, charge_id: str, since: datetime) -> Said:
        """By its id, else by ours among all charges of that time: their search may not know it yet."""
        try:
            if charge_id:
                answer = self._ask("GET", f"/charges/{charge_id}")
                return _said(answer.told) if answer.status == 200 else Said("unknown")
            found = self._in_time(order_id, since)
            return _said(found) if found else Said("missing")
        except TooManyRows:
            log.error("charge %s is not found: too many charges at that time, look for it there", order_id)
            return Said("unknown")
        except (NotSent, NoAnswer):
            return Said("unknown")

    def _in_time(self, order_id: str, since: datetime) -> Json | None:
        """Ours among all charges of its time. Raises TooManyRows."""
        second, search = since.replace(microsecond=0), _Search()
        for begin, end in SPANS:
            span = {
                "from": clock.iso(second + timedelta(seconds=begin)),
                "to": clock.iso(second + timedelta(seconds=end)),
            }
            if found := self._among("/charges", order_id, span, search):
                return found
        return None

    def _among(self, path: str, order_id: str, asked: Json, search: "_Search") -> Json | None:
        """Ours in one of their lists, page after page to its end. Raises TooManyRows, NoAnswer."""
        read = 0
        while True:
            search.turn_page()
            listed, total = _listed(self._ask("GET", path, params=asked | {"limit": PAGE, "offset": read}))
            if found := _ours(listed, order_id):
                return found
            read += len(listed)
            if read >= total:
                return None
            if not listed:  # rows that are said to be there and are not shown prove nothing
                raise NoAnswer()

    def send(self, order: Order) -> Word:
        asked = {"amount": order.amount, "metadata": {OUR_ID: order.order_id}}
        try:
            answer = self._ask("POST", f"/charges/{order.charge_id}/refunds", asked, key=order.order_id)
        except NotSent:
            return Word("not_sent")
        except NoAnswer:
            return Word("unknown")
        if answer.status in (400, 404, 422):
            return Word("failed", failure_code="rejected_by_acquirer")
        return _word(answer.told) if answer.status == 200 else _not_done(answer)

    def inquire(self, order: Order) -> Word:
        """Among the refunds of its charge. One that is not there proves nothing: it may be on its way."""
        try:
            path = f"/charges/{order.charge_id}/refunds"
            found = self._among(path, order.order_id, {}, _Search())
            return _word(found) if found else Word("unknown")
        except (NotSent, NoAnswer, TooManyRows):
            return Word("unknown")

    def _ask(
        self,
        method: str,
        path: str,
        asked: Json | None = None,
        *,
        key: str = "",
        params: Json | None = None,
    ) -> Answer:
        return exchange.ask(
            method,
            self._url + path,
            json=asked,
            params=params,
            headers={"Omise-Version": VERSION} | ({"Idempotency-Key": key} if key else {}),
            auth=(self._secret_key, ""),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
        )


def _refused(answer: Answer) -> Said:
    """An error object. What is our own fault, such as a wrong key, was surely not tried."""
    code, message = str(answer.told.get("code")), str(answer.told.get("message"))
    if answer.status >= 500 or answer.told.get("object") != "error":
        return Said("unknown")
    if code == "invalid_card" and "expir" in message:
        return Said("declined", failure_code="expired_card")
    if code in REFUSALS:
        return Said("refused", failure_code=REFUSALS[code])
    if code not in FAULTS:
        log.error("the acquirer did not take a charge: %s", code)
    return Said("declined", failure_code=FAULTS.get(code, "processing_error"))


def _not_done(answer: Answer) -> Word:
    return Word("not_sent") if answer.status in (401, 403, 429) else Word("unknown")


def _said(told: Json) -> Said:
    """A charge object. One that waits for the customer (3-D Secure) is pending."""
    try:
        return _read(told)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Said("unknown")


def _read(told: Json) -> Said:
    status, card = told["status"], told.get("card") or {}
    known: Json = {
        "charge_id": told["id"],
        "brand": _brand(card.get("brand")),
        "last4": card.get("last_digits") or "",
        "amount": told["amount"],
        "currency": str(told["currency"]).upper(),
    }
    if status == "successful":
        return Said("succeeded", **known, paid_at=_instant(told))
    if status in ENDED_UNPAID:
        code = told.get("failure_code") or ""
        return Said("declined", **known, failure_code=DECLINES.get(code, "processing_error"))
    if status == "pending":
        return Said("pending", **known, authorize_uri=_page(told.get("authorize_uri")))
    return Said("unknown", **known)


def _page(uri: str | None) -> str:
    """A page that a browser may be sent to; empty for anything else."""
    return uri if uri and len(uri) <= LONGEST_URI and uri.startswith(("https://", "http://")) else ""


def _instant(told: Json) -> datetime:
    return datetime.fromisoformat(told.get("paid_at") or told["created_at"])


def _brand(told: str | None) -> str:
    """`American Express` is `amex` everywhere else."""
    name = (told or "").lower().replace(" ", "")
    return {"americanexpress": "amex", "unionpayinternational": "unionpay"}.get(name, name)[:20]


def _word(told: Json) -> Word:
    status, reference = told.get("status"), str(told.get("id", ""))
    if status in REFUNDED:
        return Word("succeeded", reference)
    if status == "failed":
        return Word("failed", reference, "rejected_by_acquirer")
    return Word("processing" if status == "pending" else "unknown", reference)


def _listed(answer: Answer) -> tuple[list[Json], int]:
    """The rows of a page, and of the whole list.

    Raises NoAnswer for what is no list, such as an error: nothing can be concluded from that.
    """
    found = answer.told.get("data") if answer.status == 200 else None
    total = answer.told.get("total")
    if not isinstance(found, list) or not isinstance(total, int):
        raise NoAnswer()
    return [each for each in found if isinstance(each, dict)], total


def _ours(listed: list[Json], order_id: str) -> Json | None:
    return next((each for each in listed if (each.get("metadata") or {}).get(OUR_ID) == order_id), None)
