"""The application that `config.server` runs."""

import logging
import os

import django
from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished
from django.db import close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from config.handler import ServiceHandler  # noqa: E402 (needs the applications loaded)

application = ServiceHandler()
# Connections are checked at the start of a request. Each receiver at its end costs 10 us.
for receiver in (close_old_connections, close_caches, reset_urlconf):
    request_finished.disconnect(receiver)
# No log line shows them; see "Optimization" in Python's logging HOWTO. Finding the caller takes 10 us a line.
logging._srcfile = None
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
