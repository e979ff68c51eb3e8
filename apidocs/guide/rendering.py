"""Markdown of the guide as HTML without inline scripts and styles, and its headings and texts."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from unicodedata import category

import orjson
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from apidocs.guide.pages import PAGES, PICTURES, PROGRAMS, Page
from apidocs.sample_key import PLACEHOLDER

# PHP samples begin without `<?php`.
LEXER_OPTIONS = {"php": {"startinline": True}}
FORMATTER = HtmlFormatter(nowrap=True)
# Pages of the service. A path in backticks becomes a link, because Markdown files cannot link to them.
SITE = {"/docs", "/docs/try", "/openapi.json", "/openapi.yaml", "/postman.json", "/llms.txt", "/sandbox/bank"}
OPEN_BOX = "[ ] "


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    html: str
    headings: list[Heading]


def document(page: Page, key: str = PLACEHOLDER) -> Document:
    """The page as HTML, with this key in its samples. It is rendered again when its file changes."""
    return _document(page, key, page.file.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _document(page: Page, key: str, _changed_at: int) -> Document:
    tokens = _parse(page, key)
    headings = [heading for _, heading in _headings(tokens)]
    html = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return Document(title=headings[0].text, html=html, headings=headings)


@lru_cache
def search_index() -> bytes:
    """What the search of the guide reads, as JSON: each heading of each page, with the text below it."""
    return orjson.dumps([passage for page in PAGES.values() for passage in _passages(page)])


def _passages(page: Page) -> Iterator[dict[str, str]]:
    tokens = _parse(page, PLACEHOLDER)
    starts = list(_headings(tokens))
    ends = [at for at, _ in starts[1:]] + [len(tokens)]
    for (start, heading), end in zip(starts, ends, strict=True):
        texts = (_text(token) for token in tokens[start + 2 : end] if token.type in {"inline", "fence"})
        yield {
            "page": page.label,
            "heading": heading.text,
            "url": page.url if heading.level == 1 else f"{page.url}#{heading.anchor}",
            "text": " ".join(" ".join(texts).split()),
        }


def _parse(page: Page, key: str) -> list[Token]:
    tokens = _MARKDOWN.parse(page.read(key))
    for at, heading in _headings(tokens):
        tokens[at].attrSet("id", heading.anchor)
    for token in tokens:
        if token.type == "inline":
            token.children = list(_on_site(token.children or [], page))
        elif token.type in {"th_open", "td_open"} and token.attrs.pop("style", "") == "text-align:right":
            token.attrSet("class", "right")
    return tokens


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, Heading]]:
    """Each heading with its place among the tokens. Anchors are those of GitHub."""
    used: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _text(tokens[at + 1])
            anchor = anchor_of(text)
            number = used[anchor] = used.get(anchor, -1) + 1
            yield at, Heading(int(token.tag[1]), f"{anchor}-{number}" if number else anchor, text)


def anchor_of(heading: str) -> str:
    """The anchor that GitHub gives a heading: letters with their marks, digits, hyphens and underscores."""
    kept = (letter for letter in heading.lower() if letter in "_- " or category(letter)[0] in "LMN")
    return "".join(kept).replace(" ", "-")


def _text(token: Token) -> str:
    if token.children is None:
        return token.content
    return "".join(" " if child.type == "softbreak" else _text(child) for child in token.children)


def _on_site(tokens: Sequence[Token], page: Page) -> Iterator[Token]:
    """The tokens with links that work on the site. A link to a file that is not on it becomes plain text."""
    is_linked = False
    for token in tokens:
        if token.type == "link_open":
            href = url_of(str(token.attrs["href"]), page)
            is_linked = href is not None
            token.attrSet("href", href or "")
        if token.type == "image":
            token.attrSet("src", url_of(str(token.attrs["src"]), page) or "")
        if token.type == "code_inline" and token.content in SITE and not is_linked:
            yield from (
                Token("link_open", "a", 1, attrs={"href": token.content}),
                token,
                Token("link_close", "a", -1),
            )
        elif token.type not in {"link_open", "link_close"} or is_linked:
            yield token
        if token.type == "link_close":
            is_linked = False
        if token.type == "text" and token.content.startswith(OPEN_BOX):
            token.content = f"☐ {token.content.removeprefix(OPEN_BOX)}"


def url_of(href: str, page: Page) -> str | None:
    """The URL on the site of a link on a page; None if its file is not on the site."""
    path, mark, anchor = href.partition("#")
    if re.match(r"https?:|mailto:", href) or not path:
        return href
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path))
    if name in PROGRAMS | PICTURES:
        return f"/guide/{name}"
    linked = PAGES.get(name.removesuffix(".md"))
    return f"{linked.url}{mark}{anchor}" if linked else None


def _highlighted(code: str, language: str, file: str) -> str:
    """`file`: the name under which a reader saves the sample."""
    try:
        lexer = get_lexer_by_name(language or "text", **LEXER_OPTIONS.get(language, {}))
        html = highlight(code, lexer, FORMATTER)
    except ClassNotFound:
        html = escape(code)
    name = f' data-file="{escape(file)}"' if file else ""
    # `tabindex`, so that a block that is too wide can be scrolled without a mouse.
    return f'<pre tabindex="0"{name}><code>{html}</code></pre>'


_MARKDOWN = MarkdownIt("commonmark", {"html": True, "highlight": _highlighted}).enable("table")
_MARKDOWN.add_render_rule("table_open", lambda *_: '<div class="table" tabindex="0"><table>\n')
_MARKDOWN.add_render_rule("table_close", lambda *_: "</table></div>\n")
