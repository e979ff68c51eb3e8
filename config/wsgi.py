"""The WSGI application that `config.server` runs."""

import logging
import os

from django.core.wsgi import get_wsgi_application

from config.service_request import ServiceRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
application.request_class = ServiceRequest
# No log line shows them; see "Optimization" in Python's logging HOWTO. Finding the caller takes 10 us a line.
logging._srcfile = None
logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
