"""The console pages of payout accounts: add one, switch the list of a merchant on or off."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from approvals import payout_accounts
from approvals.models import PayoutAccount
from approvals.payout_account_acts import PAYOUT_ACCOUNT_ACTS
from approvals.payout_accounts import PayoutAccountListed
from audit_trail.act_pages import ActingAdmin
from core import clock
from core.admin import ReadOnlyAdmin
from merchants import services as merchants
from merchants.errors import MerchantNotFound
from reconciliation.exceptions.forms import ACCOUNT_FIELDS, AccountForm

ADD_PERMISSION = "approvals.add_payoutaccount"
POLICY_PERMISSION = "approvals.change_payoutpolicy"
LIST_URL = "admin:approvals_payoutaccount_changelist"


class MerchantForm(forms.Form):
    merchant = forms.CharField(max_length=31, label=_("Merchant"), help_text=_("Its id: mch_..."))

    def clean_merchant(self) -> Any:
        try:
            return merchants.find_merchant(str(self.cleaned_data["merchant"]).strip())
        except MerchantNotFound as error:
            raise forms.ValidationError(error.translated) from None


class PayoutAccountForm(MerchantForm, AccountForm):
    field_order = ["merchant", *ACCOUNT_FIELDS, "note"]


class PolicyForm(MerchantForm):
    is_restricted = forms.BooleanField(
        required=False,
        label=_("Only to accounts on the list"),
        help_text=_("Withdrawals, and refunds to an account other than the payer's."),
    )


class PayoutAccountAdmin(ActingAdmin):
    shows_personal_data = True
    list_display = ["id", "merchant", "bank_code", "account_last4", "added_by", "usable_at", "removed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id"]
    ordering = ["-added_at", "-id"]
    sortable_by = ("added_at",)
    object_acts = PAYOUT_ACCOUNT_ACTS
    change_list_template = "admin/payout_accounts.html"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        hidden = {"account_sealed", "account_fingerprint"}
        return [field.name for field in PayoutAccount._meta.concrete_fields if field.name not in hidden]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("new/", view(self.new_view), name="approvals_payoutaccount_new"),
            path("policy/", view(self.policy_view), name="approvals_payoutaccount_policy"),
            *super().get_urls(),
        ]

    def new_view(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm(ADD_PERMISSION):
            raise PermissionDenied
        form = PayoutAccountForm(request.POST or None, initial=request.GET.dict())
        if not form.is_valid():
            return self._ask(request, "Add an account", form)
        filled = form.cleaned_data
        account = {name: filled[name] for name in ACCOUNT_FIELDS}
        try:
            made = payout_accounts.add(filled["merchant"], **account, reason=filled["note"], now=clock.now())
        except PayoutAccountListed:
            form.add_error("bank_account", "It is on this merchant's list already.")
            return self._ask(request, "Add an account", form)
        messages.success(request, f"{made} is added. It can be used when its waiting period is over.")
        return HttpResponseRedirect(reverse(LIST_URL))

    def policy_view(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm(POLICY_PERMISSION):
            raise PermissionDenied
        form = PolicyForm(request.POST or None, initial=request.GET.dict())
        if not form.is_valid():
            return self._ask(request, "Switch the list on or off", form)
        merchant, is_restricted = form.cleaned_data["merchant"], form.cleaned_data["is_restricted"]
        payout_accounts.restrict(merchant, is_restricted, now=clock.now())
        text = "only to accounts on the list" if is_restricted else "to any account"
        messages.success(request, f"Money of {merchant.name} goes {text}.")
        return HttpResponseRedirect(reverse(LIST_URL))

    def _ask(self, request: HttpRequest, title: str, form: forms.Form) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": title, "form": form}
        return TemplateResponse(request, "admin/payout_form.html", context)


class PayoutPolicyAdmin(ReadOnlyAdmin):
    list_display = ["merchant", "is_restricted", "changed_by", "changed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=merchant__id"]
    sortable_by = ("merchant",)
