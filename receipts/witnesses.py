"""By which ways the bank told of money."""

from django.db.models import QuerySet

from receipts.models import Notice, Receipt, Source, StatementLine, Verdict


def of(receipts: QuerySet[Receipt]) -> list[Source]:
    """The ways that agree, in the order of `Source`; who contradicts the first word is none."""
    agree = Notice.objects.filter(receipt__in=receipts, verdict__in=[Verdict.NEW, Verdict.REPEAT])
    found = set(agree.values_list("source", flat=True).distinct())
    if StatementLine.objects.filter(receipt__in=receipts).exists():
        found.add(Source.STATEMENT)
    return [source for source in Source if source in found]
