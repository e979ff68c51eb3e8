"""The guide: its pages, the Markdown and the programs that they are made of, and what its search reads."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation

from apidocs.guide.pages import FOLDER, HOME, PAGES, PICTURES, PROGRAMS, SECTIONS
from apidocs.guide.rendering import document, search_index
from apidocs.sample_key import PLACEHOLDER, key_for
from core.http.api import get_or_head_only
from core.http.responses import JSON

MARKDOWN, TEXT = "text/markdown; charset=utf-8", "text/plain; charset=utf-8"
CACHED = {"Cache-Control": "public, max-age=300"}
# The pages have no inline script and no inline style.
PAGE_HEADERS = {
    **CACHED,
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
}


@get_or_head_only
def search(request: HttpRequest) -> HttpResponse:
    return HttpResponse(search_index(), content_type=JSON, headers=CACHED)


@get_or_head_only
def guide(request: HttpRequest, name: str = HOME) -> HttpResponse:
    """A page, its Markdown (with `.md`), or a program or picture that a page names."""
    if name in PROGRAMS:
        return HttpResponse((FOLDER / name).read_bytes(), content_type=TEXT, headers=CACHED)
    if name in PICTURES:
        return HttpResponse((FOLDER / name).read_bytes(), content_type="image/png", headers=CACHED)
    page = PAGES.get(name.removesuffix(".md")) or PAGES.get(f"{name}/{HOME}")
    if page is None:
        raise Http404
    if name.endswith(".md"):
        return HttpResponse(page.read(), content_type=MARKDOWN, headers=CACHED)
    menu = [None, *(each for each in PAGES.values() if each.language == page.language), None]
    at, key = menu.index(page), key_for(request)
    place = {"page": page, "before": menu[at - 1], "after": menu[at + 1]}
    context = {"document": document(page, key), "sections": SECTIONS, **place}
    with translation.override(page.language):
        response = render(request, "guide.html", context)
    own = {"Content-Language": page.language} | ({} if key == PLACEHOLDER else {"Cache-Control": "no-store"})
    for header, value in {**PAGE_HEADERS, **own}.items():
        response.headers[header] = value
    return response


@get_or_head_only
def with_slash(request: HttpRequest) -> HttpResponse:
    """The guide has one address."""
    return redirect("guide")
