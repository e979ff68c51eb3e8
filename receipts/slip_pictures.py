"""The QR code on a picture of a slip. Strangers draw these pictures, so nothing large is unpacked."""

import io

import zxingcpp
from PIL import Image

MOST_BYTES = 5_000_000
MOST_PIXELS = 25_000_000  # more than a telephone's screen or camera makes; 25 MB in shades of grey
FORMATS = ["PNG", "JPEG", "WEBP"]
Image.MAX_IMAGE_PIXELS = None  # Pillow bears seven times as many, and only warns; this module judges itself
_QR = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


class NotReadable(Exception):
    """No QR code could be read; the message is a sentence for staff."""


def texts(picture: bytes) -> list[str]:
    """What the QR codes on a PNG, JPEG or WebP say, at least one. Raises NotReadable."""
    if len(picture) > MOST_BYTES:
        raise NotReadable("The picture has more than 5 MB.")
    found = [code.text for code in zxingcpp.read_barcodes(_grey(picture), formats=_QR) if code.text]
    if not found:
        raise NotReadable(
            "There is no QR code on this picture that can be read. Crop it, or take a sharper one."
        )
    return found


def _grey(picture: bytes) -> Image.Image:
    """The first frame, in shades of grey. The size is judged by the header, before anything is unpacked."""
    try:
        image = Image.open(io.BytesIO(picture), formats=FORMATS)
        if image.width * image.height > MOST_PIXELS:
            raise NotReadable("The picture has too many pixels: make it smaller.")
        return image.convert("L")
    except NotReadable:
        raise
    except Exception:  # decoders raise whatever they like at broken pictures
        raise NotReadable("This is not a PNG, JPEG or WebP picture, or it is broken.") from None
