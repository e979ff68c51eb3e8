"""The merchant filter of console lists: by name or id, with suggestions, also with thousands of merchants."""

from typing import Any, ClassVar

from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy as _

from core import plain_text
from core.console.admin_filters import OwnerFilter, TypedField
from merchants.models import Merchant

MAX_FOUND = 20  # merchants that one text may name, and suggestions for it


def find(text: str) -> list[Merchant]:
    """The merchant with this id, those with exactly this name, or else those whose name contains it."""
    name = plain_text.name(text)
    if not plain_text.visible(text) or "\0" in text:
        return []
    key = next((word for word in name.split() if word.startswith("mch_")), None)
    if key is not None:
        return list(Merchant.objects.filter(pk=key))
    named = Merchant.objects.order_by("name", "id")
    return list(named.filter(name__iexact=name)[:MAX_FOUND]) or list(
        named.filter(name__icontains=name)[:MAX_FOUND]
    )


class MerchantFilter(OwnerFilter):
    title = _("merchant")

    @property
    def fields(self) -> list[TypedField]:
        suggestions = reverse("admin:merchants_merchant_suggest")
        return [TypedField("merchant", _("Name or id"), self.value("merchant"), suggestions)]

    @property
    def error(self) -> str:
        text = self.value("merchant")
        if text and not self.found:
            return gettext("No merchant has “%(text)s” in its name.") % {"text": text}
        return ""

    @property
    def shown(self) -> str:
        return self.found[0].name if len(self.found) == 1 else self.value("merchant")

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if not self.value("merchant"):
            return queryset
        return queryset.filter(**{f"{self.lookup}__in": [merchant.pk for merchant in self.found]})

    @cached_property
    def found(self) -> list[Merchant]:
        return find(self.value("merchant"))

    @classmethod
    def owner_of(cls, text: str) -> str | None:
        found = find(text)
        return found[0].pk if len(found) == 1 else None


class NewestOfMerchantFilter(MerchantFilter):
    """For lists without an index of a merchant's newest rows."""

    newest_first: ClassVar[Any] = ()
