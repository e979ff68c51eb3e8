"""Template filters and a tag of statements."""

from typing import Any

from django import template
from django.db.models import Count

from core.console import personal_data
from reconciliation.models import HELD_RESULTS, LineResult, MatchResult, ReconciliationException, Statement
from reconciliation.statements import importing, reasons
from reconciliation.statements.line_storage import error_without_content
from reconciliation.statements.lines import FileLine

MAX_ERRORS = 20
register = template.Library()
register.filter("personal_name", personal_data.name)
register.filter("statement_reason", reasons.translated)


@register.filter
def line_reason(line: FileLine) -> str:
    """Why a line cannot be read, without what it contains."""
    return reasons.translated(error_without_content(line))


@register.filter
def line_outcome(line: FileLine) -> str:
    return importing.words_of(importing.outcome_of(line))


@register.inclusion_tag("admin/reconciliation/statement_results.html")
def statement_results(statement: Statement) -> dict[str, Any]:
    """What became of the lines. After the end, because it reads all of them: what became of the money."""
    bank_transactions = statement.lines.filter(bank_transaction__isnull=False)
    matched = bank_transactions.exclude(
        bank_transaction__match_result__in=[*HELD_RESULTS, MatchResult.PENDING]
    )
    waiting = ReconciliationException.objects.filter(pk__in=bank_transactions.values("bank_transaction_id"))
    unreadable = statement.lines.filter(result=LineResult.UNREADABLE).order_by("line_number")
    return {
        "statement": statement,
        "counts": statement.lines.values("result").annotate(lines=Count("id")).order_by("result"),
        "matched": matched.count() if statement.completed_at else None,
        "waiting": waiting.count() if statement.completed_at else None,
        "unreadable": unreadable[: MAX_ERRORS + 1],
        "max_errors": MAX_ERRORS,
    }
