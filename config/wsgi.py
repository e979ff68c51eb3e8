"""The WSGI application that `config.server` runs."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
