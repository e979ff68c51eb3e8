"""Compress short texts by zlib. Its dictionary is what they usually say, and `own`: ids in the same row."""

import zlib
from contextlib import suppress

# To clear the tables of zlib's usual window takes four times as long as to compress such a text.
WINDOW, TABLES = 12, 4


def pack(content: bytes, usual: bytes, own: str = "") -> bytes:
    words = usual + own.encode()
    deflate = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=WINDOW, memLevel=TABLES, zdict=words)
    return deflate.compress(content) + deflate.flush()


def unpack(packed: bytes, usual: bytes, own: str = "") -> bytes:
    """Raises zlib.error for other usual words. Only for what we packed: its size has no limit."""
    with suppress(zlib.error):  # an earlier release packed it without `own`
        return zlib.decompressobj(WINDOW, usual + own.encode()).decompress(packed)
    return zlib.decompressobj(WINDOW, usual).decompress(packed)
