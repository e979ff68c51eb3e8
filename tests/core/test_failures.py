"""Failure codes: each has words for people, in both languages, and a row in `docs/errors.md`."""

import re
from pathlib import Path
from typing import get_args

from django.conf import settings
from django.utils import translation

from banks.base import DeclineCode
from core import failures

PRODUCT = ("banks", "payments", "reconciliation", "refunds", "transfers", "withdrawals")
LITERAL = re.compile(r'failure_code(?:=|": )"(\w+)"')
IN_SQL = re.compile(r"failure_code (?:=|<>) '(\w+)'")


def test_each_code_that_the_product_stores_is_in_the_catalogue() -> None:
    assert set(get_args(DeclineCode)) < failures.OF_PAYMENTS.keys()
    sources = [path for app in PRODUCT for path in Path(settings.BASE_DIR, app).rglob("*.py")]
    literals = {code for path in sources for code in LITERAL.findall(path.read_text())}
    assert len(sources) > 100
    assert "expired_card" in literals
    assert literals <= failures.CATALOGUE.keys()
    named = {
        code
        for name, code in vars(failures).items()
        if re.fullmatch("[A-Z][A-Z_]+", name) and isinstance(code, str)
    }
    assert len(named) == 11
    assert named < failures.CATALOGUE.keys()


def test_sql_compares_with_codes_of_the_catalogue() -> None:
    rules = [path for app in PRODUCT for path in Path(settings.BASE_DIR, app).rglob("*.sql")]
    literals = {code for path in rules for code in IN_SQL.findall(path.read_text())}
    assert "rejected_by_staff" in literals
    assert literals <= failures.CATALOGUE.keys()
    audit = [path.read_text() for path in Path(settings.BASE_DIR, "operations", "audit").rglob("*.sql")]
    assert not any(IN_SQL.search(text) for text in audit), "the audit takes them from the catalogue"


def test_same_code_is_retryable_of_payments_refunds_and_withdrawals() -> None:
    kinds = (failures.OF_PAYMENTS, failures.OF_REFUNDS, failures.OF_WITHDRAWALS)
    for code, failure in failures.CATALOGUE.items():
        assert {found[code].is_retryable for found in kinds if code in found} == {failure.is_retryable}


def test_words_are_in_the_language_of_the_reader() -> None:
    assert failures.words("invalid_account") == "the account does not exist"
    with translation.override("th"):
        translated = {code: failures.words(code) for code in failures.CATALOGUE}
        advice = {
            failures.advice(found, code)
            for found in (failures.OF_PAYMENTS, failures.OF_REFUNDS, failures.OF_WITHDRAWALS)
            for code in found
        }
    assert translated["invalid_account"] == "ไม่มีบัญชีนี้"
    assert not any(text.isascii() for text in (*translated.values(), *advice))


def test_code_of_an_earlier_release_stays_as_it_is() -> None:
    assert failures.words("of_an_earlier_release") == "of_an_earlier_release"
    assert failures.words(None) == "-"
    assert failures.words_and_code("of_an_earlier_release") == "of_an_earlier_release"
