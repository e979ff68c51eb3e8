"""A shop in Django, in one file: verifies webhooks, and ships each order once.

pip install django ./clients/python
WEBHOOK_SECRET=whsec_... python3 docs/examples/with_django.py 9000
"""

import os
import sys

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import connection, models, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from thaiqr import Event, PaymentEvent, SignatureError, webhooks

SECRET = os.environ.get("WEBHOOK_SECRET", "")
DATABASE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": os.environ.get("SHOP_DB", "shop.sqlite3"),
    "OPTIONS": {"transaction_mode": "IMMEDIATE"},  # two messages at once wait for each other
}
settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, DATABASES={"default": DATABASE})
django.setup()


class SeenEvent(models.Model):
    """An event that was handled. The primary key lets nobody store it twice."""

    event_id = models.CharField(primary_key=True, max_length=64)

    class Meta:
        app_label = "shop"


@csrf_exempt  # the signature proves who sent it
@require_POST
def hook(request: HttpRequest) -> HttpResponse:
    try:
        event = webhooks.unwrap(request.body, request.headers, SECRET)
    except SignatureError:
        return HttpResponse(status=400)
    # The event and what it does are one commit: both are stored, or the service sends it again.
    with transaction.atomic():
        _, is_new = SeenEvent.objects.get_or_create(event_id=event.event_id)
        if is_new:
            handle(event)
    return HttpResponse(status=204)


def handle(event: Event) -> None:
    """Change your own tables here. Call nobody: a repeat after an error would call again."""
    if isinstance(event, PaymentEvent) and event.event == "payment.succeeded":
        print("ship", event.data.reference, flush=True)


urlpatterns = [path("", hook)]

if __name__ == "__main__":
    if SeenEvent._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as schema:  # your project has a migration
            schema.create_model(SeenEvent)
    execute_from_command_line([sys.argv[0], "runserver", "--noreload", f"127.0.0.1:{sys.argv[1]}"])
