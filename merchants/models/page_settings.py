"""What payers see of a shop."""

import base64
import hashlib
from urllib.parse import quote

from django.db import models

from core.database import triggers
from core.database.columns import KeyedRow, check
from merchants.models.merchants import Merchant

MAX_LOGO = 200_000  # bytes, as staff upload it and as it is stored
AA_CONTRAST = 4.5
COLOR, PHONE = "#[0-9a-f]{6}", "[+0-9][0-9 ()-]{2,29}"
EMAIL, LINE_ID = "[^[:space:]<>@]+@[^[:space:]<>@]+", "@?[a-z0-9._-]{2,29}"


class PageSettings(KeyedRow):
    """How the pages for payers show one shop. Only `merchants.page_settings` writes it.

    It has a table of its own, because requests of the API read the row of the merchant.
    """

    merchant = models.OneToOneField(Merchant, on_delete=models.PROTECT, primary_key=True, related_name="+")
    logo = models.BinaryField(null=True, editable=False)  # a PNG that `merchants/draw_logo.py` made
    # The SHA-256 of the logo, a part of its address.
    logo_version = models.GeneratedField(
        expression=models.Func(
            models.Func("logo", function="sha256"), models.Value("hex"), function="encode"
        ),
        output_field=models.CharField(max_length=64),
        db_persist=True,
    )
    color = models.CharField(max_length=7, blank=True, verbose_name="colour")  # #rrggbb
    phone = models.CharField(max_length=30, blank=True)  # of the shop, for payers
    email = models.CharField(max_length=254, blank=True)  # of the shop, for payers
    line_id = models.CharField(max_length=30, blank=True, verbose_name="LINE id")  # of the shop
    # Whether a payer can make a new code after one expired or was declined.
    offers_new_code = models.BooleanField(default=False)
    updated_at = models.DateTimeField()

    class Meta(KeyedRow.Meta):
        verbose_name = verbose_name_plural = "payment page"
        triggers = [
            triggers.Refuse(
                "logo_is_small_png",
                triggers.INSERT | triggers.UPDATE,
                f"a logo is a PNG of at most {MAX_LOGO} bytes",
                condition=f"octet_length(NEW.logo) > {MAX_LOGO} "
                r"OR substring(NEW.logo FOR 8) <> '\x89504e470d0a1a0a'::bytea",
            )
        ]
        constraints = [
            check("pagesettings_color_is_hex", models.Q(color__regex=f"^({COLOR})?$")),
            check(
                "pagesettings_contact_is_plain",
                models.Q(
                    phone__regex=f"^({PHONE})?$",
                    email__regex=f"^({EMAIL})?$",
                    line_id__regex=f"^({LINE_ID})?$",
                ),
            ),
        ]
        indexes = [
            models.Index(
                fields=["logo_version"], condition=models.Q(logo__isnull=False), name="pagesettings_by_logo"
            )
        ]

    @property
    def style(self) -> str:
        """The colour as CSS, and black or white upon it: one of both has a contrast of 4.5 to any colour.

        Source: WCAG 2.2, relative luminance and contrast ratio.
        """
        parts = [int(self.color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (
            each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
        )
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        ink = "#fff" if 1.05 / (luminance + 0.05) >= AA_CONTRAST else "#000"
        return f":root{{--brand:{self.color};--on-brand:{ink}}}"

    @property
    def phone_digits(self) -> str:
        """For a link that calls the shop (RFC 3966)."""
        return "".join(each for each in self.phone if each in "+0123456789")

    @property
    def line_url(self) -> str:
        """The link of an official account, whose id begins with @. LINE names no link for other ids.

        Source: LINE Developers, "Use LINE URL scheme".
        """
        return f"https://line.me/R/ti/p/{quote(self.line_id)}" if self.line_id.startswith("@") else ""

    @property
    def style_source(self) -> str:
        """The style in the words of a content security policy."""
        digest = base64.b64encode(hashlib.sha256(self.style.encode()).digest()).decode()
        return f"'sha256-{digest}'"
