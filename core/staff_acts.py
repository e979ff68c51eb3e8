"""What the base class of admin pages reports about staff. `audit_trail` records it.

`core` has no tables, so `audit_trail`, which is above it, connects itself at start.
"""

from typing import Any, Protocol

from django.db.models import Model


class StaffActRecorder(Protocol):
    """Records what staff do with Django's own pages. `changes` is what `form_changes` returned."""

    def form_changes(self, form: Any) -> dict[str, Any]:
        """What a valid form changes."""

    def added(self, row: Model, changes: Any) -> None: ...

    def changed(self, row: Model, changes: Any) -> None: ...

    def deleted(self, row: Model) -> None: ...

    def viewed(self, object_type: str, object_id: str) -> None:
        """Somebody saw personal data of an object."""

    def exported(self, object_type: str, details: dict[str, Any], object_id: str = "") -> None:
        """Somebody took a list away as a file, or one object of it."""

    def searched(self, object_type: str, details: dict[str, Any]) -> None:
        """Somebody found rows by a customer's name."""


_connected: list[StaffActRecorder] = []


def connect(recorder: StaffActRecorder) -> None:
    _connected[:] = [recorder]


def recorder() -> StaffActRecorder:
    return _connected[0]
