"""Compress short texts by zlib, with what they usually say as its dictionary."""

import zlib

# To clear the tables of zlib's usual window takes four times as long as to compress such a text.
WINDOW, TABLES = 12, 4


def pack(content: bytes, usual: bytes) -> bytes:
    deflate = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=WINDOW, memLevel=TABLES, zdict=usual)
    return deflate.compress(content) + deflate.flush()


def unpack(packed: bytes, usual: bytes) -> bytes:
    """Raises zlib.error for other usual words. Only for what we packed: its size has no limit."""
    return zlib.decompressobj(WINDOW, usual).decompress(packed)
