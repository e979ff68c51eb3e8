"""The WSGI application that `config.server` runs."""

import logging
import os

from django.conf import settings
from django.core import signals
from django.core.cache import close_caches
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# Django checks connections at the start of a request too, and logs queries only with DEBUG. Nothing uses its
# caches. Each handler costs a request 10 us.
signals.request_finished.disconnect(close_old_connections)
signals.request_finished.disconnect(close_caches)
# No log line shows them; see "Optimization" in Python's logging HOWTO. Finding the caller takes 10 us a line.
logging._srcfile = None
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
if not settings.DEBUG:
    signals.request_started.disconnect(reset_queries)

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
