"""The catalogue of match results: each has words in both languages, and all lists in SQL are its own."""

import re
from pathlib import Path

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext
from thaiqr.models import PaymentException

from payments.match_results import HELD, OF_PAYMENTS, MatchResult
from payments.shapes import PaymentExceptionObject
from reconciliation.exceptions.explanations import KINDS, NOTIFICATIONS, RESOLUTIONS, RETURNS
from reconciliation.models import (
    BankTransactionKind,
    ExceptionReason,
    NotificationResult,
    ResolutionType,
    ReturnStatus,
)

LIST = re.compile(r"IN \(((?:'\w*'(?:,\s*)?)+)\)")


def test_each_result_has_words_in_both_languages() -> None:
    words = [result.label for result in MatchResult] + [held.sentence for held in HELD.values()]
    assert len(set(words)) == len(words)
    with translation.override("th"):
        assert not [text for text in words if gettext(text) == text]


def test_held_money_waits_with_the_label_of_its_result() -> None:
    assert {result: ExceptionReason(result.value).label for result in HELD} == {
        result: result.label for result in HELD
    }
    assert MatchResult.UNMATCHED not in OF_PAYMENTS


def test_merchants_read_why_and_what_to_do() -> None:
    declared = repr(PaymentExceptionObject.__annotations__["reason"])
    table = Path(settings.BASE_DIR, "docs", "errors.md").read_text()
    for result, held in HELD.items():
        assert f"| `{result}` | {held.meaning} | {held.advice} |" in table
    for result, held in OF_PAYMENTS.items():
        assert f"`{result}`: {held.meaning}" in declared
        assert f"{result}" in (PaymentException.__doc__ or "")


def test_lists_in_sql_are_those_of_the_catalogue() -> None:
    sources = [
        *Path(settings.BASE_DIR, "reconciliation", "sql").glob("*.sql"),
        *Path(settings.BASE_DIR, "operations", "audit").rglob("*.sql"),
        *Path(settings.BASE_DIR, "reconciliation", "models").glob("*.py"),
    ]
    lists = [re.findall(r"\w+", found) for path in sources for found in LIST.findall(path.read_text())]
    of_held = [set(found) for found in lists if set(found) & {"late", "duplicate", "amount_mismatch"}]
    assert all(found in (set(HELD), set(OF_PAYMENTS)) for found in of_held)
    assert set(HELD) in of_held


def test_each_code_of_reconciliation_has_a_sentence() -> None:
    assert set(KINDS) == set(BankTransactionKind)
    assert set(NOTIFICATIONS) == set(NotificationResult)
    assert set(RESOLUTIONS) == set(ResolutionType)
    assert set(RETURNS) == set(ReturnStatus)
