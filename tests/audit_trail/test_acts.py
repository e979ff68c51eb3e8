"""Each thing that staff can do in the console has an act of the audit trail."""

from typing import Any

from django.contrib import admin

from audit_trail.act_pages import ActPages
from audit_trail.pages import RecordedAdmin


def test_staff_act_on_pages_with_a_reason_and_not_in_lists() -> None:
    assert [found for found in admin.site._registry.values() if found.actions] == []


def test_each_page_of_the_console_records_forms_and_deletions() -> None:
    assert [found for found in admin.site._registry.values() if not isinstance(found, RecordedAdmin)] == []


def test_acts_on_objects_have_different_addresses() -> None:
    pages: Any = [found for found in admin.site._registry.values() if isinstance(found, ActPages)]
    assert pages
    for found in pages:
        slugs = [each.slug for each in found.object_acts]
        assert len(set(slugs)) == len(slugs), found
