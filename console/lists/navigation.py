"""The navigation of the console: sections by task, in the order in which staff need them.

Models that no section names, and the details of each section, are internals. They are in the last section,
*System*.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import capfirst

from console.people.roles import SECTIONS, Section

DETAILS = sorted(label for section in SECTIONS for label in section.details)
NAMED = {*DETAILS, *(label for section in SECTIONS for label in section.lists)}


@dataclass(frozen=True)
class Link:
    """A link to a list. `is_current` marks the list of the shown page."""

    label: str | Promise
    url: str
    is_current: bool


@dataclass(frozen=True)
class MenuItem:
    """A section as one user sees it, with the lists that this user may view."""

    name: str
    label: Promise
    links: list[Link]

    @property
    def url(self) -> str:
        return self.links[0].url

    @property
    def is_current(self) -> bool:
        return any(link.is_current for link in self.links)


def menu(site: admin.AdminSite, request: HttpRequest) -> list[MenuItem]:
    """Return the sections with at least one list that the user may view."""
    items = (MenuItem(each.name, each.label, list(_links(site, request, each))) for each in SECTIONS)
    return [item for item in items if item.links]


def _links(site: admin.AdminSite, request: HttpRequest, section: Section) -> Iterator[Link]:
    by_label: dict[str, Any] = {model._meta.label_lower: page for model, page in site._registry.items()}
    for label in section.lists or (*DETAILS, *sorted(by_label.keys() - NAMED)):
        if not by_label[label].has_view_permission(request):
            continue
        url = reverse(f"{site.name}:{label.replace('.', '_')}_changelist")
        name = capfirst(by_label[label].opts.verbose_name_plural)
        yield Link(name, url, is_current=request.path.startswith(url))
    for page in section.pages:
        if request.user.has_perm(page.permission):
            url = reverse(f"{site.name}:{page.name}")
            yield Link(page.label, url, is_current=request.path.startswith(url))
