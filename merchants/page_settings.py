"""Change how the pages for payers show one shop: its logo, its colour, and whom a payer can ask."""

import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from core.work import decoders
from core.work.decoders import DecoderFailed
from merchants.models import MAX_LOGO, Merchant, PageSettings

DRAW_LOGO = Path(__file__).with_name("draw_logo.py")


def drawn_logo(picture: bytes) -> bytes:
    """A small PNG of a PNG or JPEG, drawn anew, without the rest of the file. Raises ValidationError."""
    if len(picture) > MAX_LOGO:
        raise ValidationError(_("The logo has more than 200 kB."))
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as printed:
        source.write(picture)
        source.seek(0)
        try:
            decoders.run(DRAW_LOGO, decoders.PICTURE_OF_STAFF, source, printed)
        except BlockingIOError:
            raise ValidationError(_("Another picture is being read. Try again in a few seconds.")) from None
        except DecoderFailed:
            raise ValidationError(
                _("This is no PNG or JPEG picture of at most 2,000 by 2,000 pixels, or it is broken.")
            ) from None
        printed.seek(0)
        return printed.read()


@transaction.atomic
def change(merchant_id: str, *, now: datetime, **fields: Any) -> PageSettings:
    """Set fields of `PageSettings`; the others stay. `logo`: what `drawn_logo` made, or None for none."""
    merchant = Merchant.objects.select_for_update(no_key=True).get(pk=merchant_id)
    row = PageSettings.objects.filter(pk=merchant.pk).first() or PageSettings(merchant=merchant)
    with recorded(Act.PAGE_SETTINGS_CHANGED, row):
        for name, value in (fields | {"updated_at": now}).items():
            setattr(row, name, value)
        row.save()
    return row


def offers_new_code(merchant_id: str) -> bool:
    """Whether payers of the shop may make a new code after one expired or was declined."""
    return PageSettings.objects.filter(pk=merchant_id, offers_new_code=True).exists()


def logo(version: str) -> bytes | None:
    """The logo with this SHA-256. Shops with the same logo share its address."""
    if not version.isalnum():  # PostgreSQL takes no U+0000
        return None
    found = PageSettings.objects.filter(logo_version=version).values_list("logo", flat=True).first()
    return None if found is None else bytes(found)
