"""Candidates: payments that held money may be meant for, with an explanation. Staff decide.

References are compared as they are mistyped, cut short or changed by a spreadsheet.

Two statements for any number of bank transactions: one finds codes, the other loads them with their payments.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, combinations, islice

from django.db.models import Q
from django.utils.translation import gettext as _, ngettext
from rapidfuzz.distance import Levenshtein

from core import clock
from core.database import rows
from merchants.models import OF_MERCHANT
from payments.models import Payment, PaymentStatus
from qrcodes.models import QrCode
from reconciliation.exceptions import explanations
from reconciliation.models import BankTransaction, BankTransactionKind

MAX_EDITS = 2
MIN_FRAGMENT_LENGTH = 6  # a shorter text could be a part of any reference
MAX_SPELLINGS = 200
CONFUSABLE = ["O0Q", "I1L", "S5", "B8", "Z2", "G6"]
_OTHERS = {character: group.replace(character, "") for group in CONFUSABLE for character in group}
MAX_CANDIDATES = 5
# Codes made up to 7 days before the money was paid. Clocks differ, so also up to 10 minutes after, but before
# the bank's report, which our clock dates.
SEARCH_BEFORE, SEARCH_AFTER = timedelta(days=7), timedelta(minutes=10)
# Limits for one exception, for all rows of a list together, and the least for each row. With those of one
# exception a list takes seconds. The payments are the newest of a merchant.
PAYMENTS_SEARCHED = (1_000, 5_000, 100)
CODES_KEPT = (20, 200, 4)
SPELLINGS = (MAX_SPELLINGS, 1_500, 30)

# Among a merchant's codes of those days: unpaid ones with this amount, and ones that share a third of the
# reference, as each similar one does. An index has those of each status in the order of time alone.
FIND_CODES = f"""
SELECT query.id, found.payment_id FROM reconciliation_banktransaction query
JOIN merchants_merchant m ON (query.bank, query.biller_id) IN ({OF_MERCHANT})
CROSS JOIN LATERAL (
    SELECT text, (length(text) + 2) / 3 AS size
    FROM regexp_replace(upper(query.reference1), '[^0-9A-Z]', '', 'g') AS normalized (text) OFFSET 0
) reported
CROSS JOIN LATERAL (
    SELECT code.payment_id FROM (
        SELECT of_status.* FROM unnest(%(statuses)s::text[]) AS kind (status), LATERAL (
            SELECT id, amount, status, created_at FROM payments_payment
            WHERE merchant_id = m.id AND status = kind.status AND qr_code_id IS NOT NULL
                AND created_at BETWEEN query.paid_at - %(search_before)s
                    AND least(query.paid_at + %(search_after)s, query.received_at)
            ORDER BY created_at DESC LIMIT %(max_searched)s
        ) AS of_status
        ORDER BY created_at DESC, id DESC LIMIT %(max_searched)s
    ) recent JOIN qrcodes_qrcode code ON code.payment_id = recent.id
    CROSS JOIN LATERAL (
        SELECT length(reported.text) >= {MIN_FRAGMENT_LENGTH} AND (
            strpos(code.reference1, substr(reported.text, 1, reported.size)) > 0
            OR strpos(code.reference1, substr(reported.text, reported.size + 1, reported.size)) > 0
            OR strpos(code.reference1, substr(reported.text, 2 * reported.size + 1)) > 0
        ) AS is_similar
    ) compared
    WHERE compared.is_similar OR recent.amount = query.amount AND recent.status IN ('pending', 'expired')
    ORDER BY compared.is_similar DESC, recent.created_at DESC LIMIT %(max_kept)s
) found
WHERE query.id = ANY(%(ids)s) AND query.biller_id <> ''
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Candidate:
    """A payment that the money may be for. score: only for sorting; a higher one is more likely."""

    payment: Payment
    code: QrCode
    score: int
    explanation: str

    @property
    def is_unpaid(self) -> bool:
        return self.payment.status in (PaymentStatus.PENDING, PaymentStatus.EXPIRED)


def find(bank_transactions: Sequence[BankTransaction]) -> dict[str, list[Candidate]]:
    """The most likely payments of each credit, best first, by the id of the bank transaction."""
    credits = [each for each in bank_transactions if each.kind == BankTransactionKind.CREDIT]
    if not credits:
        return {}
    found, limit = _find_codes(credits), _share(SPELLINGS, len(credits))
    found_spellings = {each.id: spellings(each.reference1, limit) for each in credits}
    ids, references = chain.from_iterable(found.values()), chain.from_iterable(found_spellings.values())
    known = QrCode.objects.select_related("payment", "merchant")
    wanted = known.filter(Q(pk__in=list(ids)) | Q(reference1__in=list(references)))
    codes = {key: code for code in wanted for key in (code.pk, code.reference1)}
    candidates: dict[str, list[Candidate]] = {}
    for bank_transaction in credits:
        keys = [*found_spellings[bank_transaction.id], *found[bank_transaction.id]]
        near = {codes[key].pk: codes[key] for key in keys if key in codes}
        compared = [each for code in near.values() if (each := compare(bank_transaction, code)) is not None]
        candidates[bank_transaction.id] = sorted(compared, key=partial(_sort_key, bank_transaction))[
            :MAX_CANDIDATES
        ]
    return candidates


def compare(bank_transaction: BankTransaction, code: QrCode) -> Candidate | None:
    """Compare a payment to the money; None if neither the reference nor the amount is similar."""
    payment = code.payment
    similar = compare_references(bank_transaction.reference1, code.reference1)
    if code.bank != bank_transaction.bank or (similar is None and bank_transaction.amount != payment.amount):
        return None
    score, text = similar or (0, _("another reference"))
    if bank_transaction.biller_id != code.biller_id:
        score, text = score - 10, ", ".join([text, _("another biller id")])
    if bank_transaction.amount == payment.amount:
        score, amount_text = score + 30, _("same amount")
    else:
        amount_text = explanations.of_difference(bank_transaction.amount - payment.amount)
    time_score, time_text = _compare_time(payment, bank_transaction.paid_at)
    return Candidate(payment, code, score + time_score, f"{amount_text}, {time_text}, {text}")


def _sort_key(bank_transaction: BankTransaction, candidate: Candidate) -> tuple[int, timedelta, str]:
    """Among equal scores, the code whose time is closest to the payment time comes first."""
    payment = candidate.payment
    return -candidate.score, abs(bank_transaction.paid_at - payment.created_at), payment.id


def _compare_time(payment: Payment, paid_at: datetime) -> tuple[int, str]:
    elapsed = paid_at - payment.created_at
    if elapsed < timedelta(0):
        return 0, _("code made %(elapsed)s after the money") % {"elapsed": clock.format_duration(-elapsed)}
    score = next((score for limit, score in _TIME_SCORES if elapsed <= limit), 0)
    return score, _("code made %(elapsed)s before the money") % {"elapsed": clock.format_duration(elapsed)}


_TIME_SCORES = [(timedelta(minutes=15), 10), (timedelta(hours=1), 8), (timedelta(days=1), 5)]


def _find_codes(bank_transactions: Sequence[BankTransaction]) -> defaultdict[str, list[str]]:
    """Return the payments of candidate QR codes by bank transaction id."""
    values = {
        "ids": [each.id for each in bank_transactions],
        "statuses": PaymentStatus.values,
        "search_before": SEARCH_BEFORE,
        "search_after": SEARCH_AFTER,
        "max_searched": _share(PAYMENTS_SEARCHED, len(bank_transactions)),
        "max_kept": _share(CODES_KEPT, len(bank_transactions)),
    }
    found = defaultdict(list)
    for bank_transaction_id, payment_id in rows.run(FIND_CODES, values).fetchall():
        found[bank_transaction_id].append(payment_id)
    return found


def _share(limits: tuple[int, int, int], bank_transactions: int) -> int:
    """The limit for each of so many bank transactions."""
    most, together, least = limits
    return min(max(together // bank_transactions, least), most)


def normalize(reference: str) -> str:
    """Capitals and digits only, as in our references."""
    return "".join(each for each in reference.upper() if each.isascii() and each.isalnum())


def spellings(reference: str, limit: int = MAX_SPELLINGS) -> list[str]:
    """The reference, normalized, and with up to two confusable characters replaced, fewest changes first."""
    normalized = normalize(reference)
    changes = [(at, other) for at, each in enumerate(normalized) for other in _OTHERS.get(each, "")]
    selected = chain.from_iterable(combinations(changes, count) for count in range(1, MAX_EDITS + 1))
    # `dict` keeps one change of each place: two of one place are no spelling of their own.
    swapped = (_with_changes(normalized, dict(each)) for each in selected if len(dict(each)) == len(each))
    # `islice` ends the work, too: a long reference has thousands of spellings.
    variants = dict.fromkeys(islice(chain([reference, normalized], swapped), limit))
    return [spelling for spelling in variants if spelling]


def compare_references(reported: str, expected: str) -> tuple[int, str] | None:
    """How similar a reference is to one of ours (60: equal), and why; None if it is not."""
    if reported == expected:
        return 60, _("same reference")
    normalized = normalize(reported)
    if normalized == expected:
        return 55, _("same reference in lower case or with other signs")
    if len(normalized) < MIN_FRAGMENT_LENGTH:
        return None
    return _compare_edited(normalized, expected) or _compare_truncated(normalized, expected)


def _with_changes(normalized: str, changes: dict[int, str]) -> str:
    return "".join(changes.get(at, character) for at, character in enumerate(normalized))


def _compare_edited(normalized: str, expected: str) -> tuple[int, str] | None:
    count = Levenshtein.distance(normalized, expected, score_cutoff=MAX_EDITS)
    if count > MAX_EDITS:
        return None
    confused = _confused_characters(normalized, expected)
    differs = ngettext(
        "reference differs in %(count)s character", "reference differs in %(count)s characters", count
    )
    explanation = differs % {"count": count}
    if confused:
        return 50, f"{explanation} ({', '.join(confused)})"
    return 45 if count == 1 else 35, explanation


def _confused_characters(normalized: str, expected: str) -> list[str]:
    """The confused characters, if nothing else differs."""
    if len(normalized) != len(expected):
        return []
    differing = [(left, right) for left, right in zip(normalized, expected, strict=True) if left != right]
    confusable = all(right in _OTHERS.get(left, "") for left, right in differing)
    text = _("%(left)s for %(right)s")
    return [text % {"left": left, "right": right} for left, right in differing] if confusable else []


def _compare_truncated(normalized: str, expected: str) -> tuple[int, str] | None:
    if expected.startswith(normalized) or expected.endswith(normalized):
        return 40, _("reference cut short to %(count)s characters") % {"count": len(normalized)}
    if normalized.startswith(expected) or normalized.endswith(expected):
        count = len(normalized) - len(expected)
        return 40, _("reference with %(count)s characters more") % {"count": count}
    return None
