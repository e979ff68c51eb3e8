"""Records of what staff do with Django's own forms, such as those of users and groups."""

from typing import Any

from django.db.models import Model

from audit_trail import recording, values
from audit_trail.acts import Act


class FormRecorder:
    """The `core.staff_acts.StaffActRecorder` of this service."""

    def form_changes(self, form: Any) -> dict[str, Any]:
        names = form.changed_data
        return {
            "before": values.of_form(form.initial, names),
            "after": values.of_form(form.cleaned_data, names),
        }

    def added(self, row: Model, changes: Any) -> None:
        recording.write(Act.ADDED, row, after=values.filled(changes["after"]))

    def changed(self, row: Model, changes: Any) -> None:
        recording.write(Act.CHANGED, row, **changes)

    def deleted(self, row: Model) -> None:
        recording.write(Act.DELETED, row, before=values.filled(values.of_row(row)))

    def viewed(self, object_type: str, object_id: str) -> None:
        recording.write_view(object_type, object_id)

    def searched(self, object_type: str, details: dict[str, Any]) -> None:
        recording.write_search(object_type, details)

    def exported(self, object_type: str, details: dict[str, Any], object_id: str = "") -> None:
        recording.write_export(object_type, details, object_id)
