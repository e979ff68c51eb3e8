"""Sessions of the console in the database, sealed.

A session holds secrets for a while: that of an app which is being set up, and a form whose sender is asked
"Is it you?". Django loads this module by the setting SESSION_ENGINE.
"""

from typing import Any

from django.contrib.sessions.backends import db

from core import vault

CONTEXT = "session"


class SessionStore(db.SessionStore):
    def encode(self, session_dict: dict[str, Any]) -> str:
        return vault.seal(super().encode(session_dict), context=CONTEXT)

    def decode(self, session_data: str | bytes) -> dict[str, Any]:
        """Empty for a session that no key opens any more."""
        try:
            return super().decode(vault.open_sealed(session_data, context=CONTEXT))
        except vault.CannotOpen:
            return {}
