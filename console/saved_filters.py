"""Saved filters: each member of staff keeps filters of lists under names, and finds them above the list."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    QueryDict,
)
from django.urls import reverse
from django.utils.translation import gettext as _

from console.models import SavedFilter
from core import clock

# For all lists of one person together.
MAX_SAVED = 50
# A saved filter is about which rows: a search may name a customer, and a page number means nothing later.
NOT_SAVED = ("q", "p", "all", "e", "o")


class TooMany(Exception):
    """The person has MAX_SAVED filters. Nothing was saved."""


class SaveForm(forms.Form):
    list = forms.CharField(max_length=100)
    name = forms.CharField(max_length=60)
    query = forms.CharField(max_length=1000)


def of_list(user: Any, label: str) -> list[SavedFilter]:
    """The saved filters of this person for one list, by name."""
    return list(SavedFilter.objects.filter(user=user, list_label=label).order_by("name", "id"))


def filters_of(query: str) -> str:
    """The part of a list's address that a saved filter keeps; empty if it has no filter."""
    found = QueryDict(mutable=True)
    for name, value in QueryDict(query).items():
        # `state__exact=` finds the empty text; an empty field that staff type into filters nothing.
        if name not in NOT_SAVED and (value or "__" in name):
            found[name] = str(value)
    return found.urlencode()


@transaction.atomic
def save(user: Any, label: str, name: str, query: str) -> SavedFilter:
    """Save filters, in place of those with the same name. Raises TooMany."""
    # So that two requests at once cannot both be the last that fits.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    is_new = not SavedFilter.objects.filter(user=user, list_label=label, name=name).exists()
    if is_new and SavedFilter.objects.filter(user=user).count() >= MAX_SAVED:
        raise TooMany
    saved, _created = SavedFilter.objects.update_or_create(
        user=user, list_label=label, name=name, defaults={"query": query, "created_at": clock.now()}
    )
    return saved


def save_page(site: admin.AdminSite, request: HttpRequest) -> HttpResponse:
    """Save the filters of the list that the form names, and show this list."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = SaveForm(request.POST)
    page = _list_page(site, request, str(request.POST.get("list", "")))
    query = filters_of(str(request.POST.get("query", "")))
    if not form.is_valid():
        messages.error(request, _("Give the filter a name of at most %(count)s characters.") % {"count": 60})
    elif not query:
        messages.error(request, _("Choose a filter first: there is nothing to save."))
    else:
        _save(request, form.cleaned_data, query)
    return HttpResponseRedirect(f"{page}?{query}" if query else page)


def delete_page(site: admin.AdminSite, request: HttpRequest, number: int) -> HttpResponse:
    """Delete a filter of one's own, and show its list."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    user: Any = request.user
    found = SavedFilter.objects.filter(pk=number, user=user).first()
    if found is None:
        raise Http404
    found.delete()
    messages.success(request, _("The filter “%(name)s” is deleted.") % {"name": found.name})
    return HttpResponseRedirect(_list_page(site, request, found.list_label))


def _save(request: HttpRequest, values: dict[str, Any], query: str) -> None:
    try:
        saved = save(request.user, values["list"], values["name"], query)
    except TooMany:
        text = _("You have %(count)s saved filters. Delete one first.")
        messages.error(request, text % {"count": MAX_SAVED})
    else:
        messages.success(request, _("The filter “%(name)s” is saved.") % {"name": saved.name})


def _list_page(site: admin.AdminSite, request: HttpRequest, label: str) -> str:
    """The address of a list. Raises Http404 and PermissionDenied."""
    found = next((each for model, each in site._registry.items() if model._meta.label_lower == label), None)
    if found is None:
        raise Http404
    if not found.has_view_permission(request):
        raise PermissionDenied
    return reverse(f"admin:{found.opts.app_label}_{found.opts.model_name}_changelist")
