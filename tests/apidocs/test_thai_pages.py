"""The Thai pages of the guide say what the English ones say, and each leads to the other."""

import re
from collections import Counter

import pytest
from django.test import Client

from apidocs.guide.pages import PAGES, THAI, Page
from apidocs.guide.rendering import document

# The pages of the first hour, and that of staff.
NEEDED = {"README", "start/curl", "webhooks-tutorial", "testing", "going-live", "which-bank", "staff-tasks"}
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
thai_pages = pytest.mark.parametrize(
    "page", [each for each in PAGES.values() if each.language == "th"], ids=lambda page: page.name
)


def english(page: Page) -> Page:
    assert page.translated is not None
    return page.translated


def test_pages_of_the_first_hour_are_in_thai() -> None:
    assert {each.name.removeprefix(THAI) for each in PAGES.values() if each.language == "th"} == NEEDED
    assert all(each.name.startswith(THAI) == (each.language == "th") for each in PAGES.values())


@thai_pages
def test_thai_page_has_the_headings_of_the_english_one(page: Page) -> None:
    ours, theirs = (document(each).headings for each in (page, english(page)))
    assert [each.level for each in ours] == [each.level for each in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert re.findall(r"^\d+\.", mine.text) == re.findall(r"^\d+\.", other.text)


@thai_pages
def test_thai_page_has_the_samples_of_the_english_one(page: Page) -> None:
    """Byte for byte, so those of the English page, which run in the tests, stand for both."""
    assert FENCE.findall(page.file.read_text()) == FENCE.findall(english(page).file.read_text())


@thai_pages
def test_thai_page_names_every_value_of_the_english_one(page: Page) -> None:
    """A row that is new in a table of one page is missing in the other."""
    assert values(english(page)) - values(page) == Counter()


def values(page: Page) -> Counter[str]:
    return Counter(re.findall(r"`([^`\n]+)`", FENCE.sub("", page.file.read_text())))


@thai_pages
def test_pages_lead_to_each_other_and_are_named_in_their_language(client: Client, page: Page) -> None:
    for here, there in ((page, english(page)), (english(page), page)):
        response = client.get(here.url)
        text = response.content.decode()
        assert f'<html lang="{here.language}">' in text
        assert f'<link rel="alternate" hreflang="{there.language}" href="{there.url}">' in text
        assert f'<a href="{there.url}" lang="{there.language}" hreflang="{there.language}">' in text
        assert response["Content-Language"] == here.language
        assert ("ในหน้านี้" in text) == (here.language == "th")


def test_neighbours_of_a_page_have_its_language(client: Client) -> None:
    for page in PAGES.values():
        text = client.get(page.url).content.decode()
        for url in re.findall(r'<a href="([^"]+)" rel="(?:prev|next)"', text):
            (linked,) = [each for each in PAGES.values() if each.url == url]
            assert linked.language == page.language


def test_page_without_a_thai_form_has_no_switch(client: Client) -> None:
    assert 'rel="alternate"' not in client.get("/guide/start/go").content.decode()
