"""Sessions of the console in the database, with their user and their last request.

Django loads them by the setting SESSION_ENGINE. A session ends eight hours after its last change, or
SESSION_IDLE_MINUTES after its last request.
"""

from datetime import timedelta
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.base_session import AbstractBaseSession

from console.models import StaffSession, idle_period
from core import clock

# A request within a minute after another one writes nothing.
TOUCH_PERIOD = timedelta(minutes=1)


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[AbstractBaseSession]:
        return StaffSession

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        row.last_used_at = clock.now()
        return row

    def _get_session_from_db(self) -> Any:
        row: Any = super()._get_session_from_db()  # type: ignore[misc]
        now = clock.now()
        if row is None:
            return None
        if row.last_used_at <= now - idle_period():
            self._session_key = None
            return None
        if row.last_used_at <= now - TOUCH_PERIOD:
            # Not by the row: another request may have changed or ended the session meanwhile.
            StaffSession.objects.filter(pk=row.pk).update(last_used_at=now)
        return row
