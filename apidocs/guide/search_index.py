"""What the search of the guide reads: each heading of each page, with the text below it."""

from functools import lru_cache

import orjson

from apidocs.guide.pages import PAGES
from apidocs.guide.rendering import passages


@lru_cache
def search_index() -> bytes:
    """JSON: a list of passages with `page`, `heading`, `url` and `text`."""
    return orjson.dumps(
        [
            {
                "page": page.label,
                "heading": passage.heading.text,
                "url": page.url if passage.heading.level == 1 else f"{page.url}#{passage.heading.anchor}",
                "text": passage.text,
            }
            for page in PAGES.values()
            for passage in passages(page)
        ]
    )
