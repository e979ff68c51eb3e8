from base64 import b64encode

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from core import clock, money
from core.console import admin_columns
from core.console.admin_lists import DateFilter
from links import services
from links.link_acts import LINK_ACTS
from links.models import PaymentLink
from merchants.admin_filters import NewestOfMerchantFilter
from qrcodes import images


@admin.register(PaymentLink)
class PaymentLinkAdmin(ActingAdmin):
    """The list and pages of payment links. A page has the picture to print."""

    mode_column = "merchant__mode"
    list_display = [
        *("id", "merchant", "reference", "status_now", "amount_or_limits", "paid_payments", "expires_at"),
        "created_at",
    ]
    list_filter = [NewestOfMerchantFilter, DateFilter]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=reference"]
    scanned_fields = ("amount", "reference")
    object_acts = LINK_ACTS
    fields = [
        *("merchant", "status_now", "paid_payments", "open_codes", "amount_or_limits", "description"),
        *("reference", "metadata", "max_payments", "expiry_minutes", "page", "picture"),
        *("created_at", "expires_at", "deactivated_at", "deactivated_by"),
    ]

    @admin.display(description=_("status"))
    def status_now(self, link: PaymentLink) -> SafeString:
        status = link.status_at(clock.now())
        return admin_columns.badge(status, status.label)

    @admin.display(description=_("amount"))
    def amount_or_limits(self, link: PaymentLink) -> str:
        amounts = [link.amount] if link.amount is not None else [link.amount_min, link.amount_max]
        return " - ".join(money.display(each) for each in amounts if each is not None)

    @admin.display(description=_("payments"))
    def paid_payments(self, link: PaymentLink) -> SafeString:
        """How many there are of how many there may be, in red if they are more, with their list."""
        paid, most = link.payments, link.max_payments
        text = f"{paid:,}" if most is None else f"{paid:,} / {most:,}"
        shown = admin_columns.badge("failed", text) if most is not None and paid > most else text
        query = urlencode({"q": link.id})
        page = reverse("admin:payments_payment_changelist")
        return format_html('<a href="{}?{}">{}</a>', page, query, shown)

    open_codes = admin_columns.column(
        _("open codes"), lambda link: services.open_codes([link], clock.now()).get(link.id, 0)
    )
    page = admin_columns.column(
        _("page"), lambda link: format_html('<a class="id" title="{0}" href="{0}">{0}</a>', link.url)
    )

    @admin.display(description=_("picture to print"))
    def picture(self, link: PaymentLink) -> SafeString:
        drawn = b64encode(images.svg(link.url)).decode()
        return format_html('<img src="data:image/svg+xml;base64,{}" width="240" height="240" alt="">', drawn)
