"""The WSGI application that `config.server` runs."""

import os

from django.conf import settings
from django.core import signals
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# Django checks connections at the start of a request too, and logs queries only with DEBUG.
signals.request_finished.disconnect(close_old_connections)
if not settings.DEBUG:
    signals.request_started.disconnect(reset_queries)

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
