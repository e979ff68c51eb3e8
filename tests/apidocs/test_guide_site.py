"""The guide at /guide: every page of `docs/`, its links, its policy, and what its search reads."""

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

import banks
from apidocs.guide.pages import FOLDER, PAGES, PROGRAMS, SAMPLE_URL, Page, for_merchants
from apidocs.guide.rendering import anchor_of, document, url_of
from tests.test_code_rules import DOCUMENTS

# For those who change the service; the guide is for those who use it.
NOT_ON_THE_SITE = {"architecture", "performance", "structure"}
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
pages = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@pages
def test_page_is_shown_with_its_title_and_the_menu(client: Client, page: Page) -> None:
    response = client.get(page.url)
    text = response.content.decode()
    assert (response.status_code, response["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert page.file.read_text().startswith(f"# {document(page).title}\n")
    assert f"<title>{document(page).title} | Thai QR Payments</title>" in text
    assert text.count('aria-current="page"') == 1
    assert all(f'href="{each.url}"' in text for each in PAGES.values())


@pages
def test_page_has_no_inline_script_or_style_and_nothing_of_other_sites(client: Client, page: Page) -> None:
    response = client.get(page.url)
    text = response.content.decode()
    assert re.findall(r"<style|<script(?![^>]* src=)|<[^>]+ (?:style|on\w+)=", text) == []
    loaded = (
        r'<(?:link(?! rel="alternate")|script|img|iframe)[^>]+(?:src|href)="(?!/static/|/guide/pictures/)'
    )
    assert re.findall(loaded, text) == []
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    assert policy.pop("default-src") == "'none'"
    assert set(policy.values()) == {"'self'", "'none'"}


@pages
@pytest.mark.slow
def test_links_of_a_page_lead_to_a_page_and_a_heading(client: Client, page: Page) -> None:
    for href in map(unescape, re.findall(r'href="([^"]+)"', client.get(page.url).content.decode())):
        path, _, anchor = unquote(href).partition("#")
        if not href.startswith(("http", "mailto:")):
            shown = client.get(path or page.url)
            text = shown.getvalue().decode()
            assert shown.status_code == 200, href
            assert not anchor or anchor == "content" or f'id="{anchor}"' in text, href


@pages
def test_page_links_to_the_site_or_to_decisions(page: Page) -> None:
    """A link to a decision is plain text on the site. Any other file must be on it."""
    for href in LINK.findall(page.file.read_text()):
        assert url_of(href, page) or "decisions/" in href, href


def test_every_document_is_in_the_menu() -> None:
    names = {str(path.relative_to(FOLDER)).removesuffix(".md") for path in FOLDER.rglob("*.md")}
    assert {name for name in names if not name.startswith("decisions/")} == {*PAGES, *NOT_ON_THE_SITE}


def test_links_of_documents_name_headings_that_exist() -> None:
    for path in DOCUMENTS:
        for href in LINK.findall(path.read_text()):
            name, _, anchor = href.partition("#")
            linked = path.parent / name if name else path
            assert not anchor or anchor in headings(linked), href


def headings(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {anchor_of(title) for title in titles}


@pytest.mark.slow
def test_search_reads_each_heading_with_its_text_and_place(client: Client) -> None:
    passages = client.get("/guide/search.json").json()
    assert {passage["page"] for passage in passages} == {page.label for page in PAGES.values()}
    (retries,) = [each for each in passages if each["url"] == "/guide/webhooks#retries"]
    assert (retries["page"], retries["heading"]) == ("Webhook reference", "Retries")
    assert "`" not in retries["text"] and "|" not in retries["text"]
    assert any("สตางค์" in each["text"] and each["url"] == "/guide/th#กฎสามข้อ" for each in passages)
    assert any("idempotency_key=number" in each["text"] for each in passages), "code is searched too"


def test_page_is_served_as_markdown_for_programs(client: Client) -> None:
    for page in PAGES.values():
        served = client.get(f"/guide/{page.name}.md")
        assert served["Content-Type"] == "text/markdown; charset=utf-8"
        assert served.content.decode() == page.read()
    listed = client.get("/llms.txt").content.decode()
    assert all(f"](/guide/{page.name}.md): {page.summary}\n" in listed for page in for_merchants())


def test_program_of_the_guide_is_served_as_text(client: Client) -> None:
    for name in PROGRAMS:
        served = client.get(f"/guide/{name}")
        assert served["Content-Type"] == "text/plain; charset=utf-8"
        assert served.content == (FOLDER / name).read_bytes()


@pytest.mark.parametrize(
    "name", ["decisions/README", "architecture.md", "../README.md", "..%2FREADME.md", "examples/", "x"]
)
def test_other_files_are_not_in_the_guide(client: Client, name: str) -> None:
    assert client.get(f"/guide/{name}").status_code == 404


def test_guide_has_one_address(client: Client) -> None:
    assert client.get("/guide/")["Location"] == "/guide"
    assert client.post("/guide/").json()["error"]["code"] == "method_not_allowed"


def test_samples_have_the_test_key_on_the_machine_of_make_run(client: Client, settings: Any) -> None:
    settings.SAMPLE_KEY = "tq_test_abcdefgh_secret"
    here, elsewhere = (client.get("/guide/start/curl", HTTP_HOST=host) for host in ("localhost", "a.example"))
    assert "tq_test_abcdefgh_secret" in here.content.decode() and here["Cache-Control"] == "no-store"
    assert "tq_test_..." in elsewhere.content.decode() and "public" in elsewhere["Cache-Control"]
    assert "tq_test_abcdefgh_secret" not in elsewhere.content.decode()
    assert "<code>tq_test_...</code>" in client.get("/guide/concepts", HTTP_HOST="localhost").content.decode()


@pages
def test_samples_have_the_address_of_the_instance(client: Client, page: Page, settings: Any) -> None:
    shown = client.get(f"/guide/{page.name}.md").content.decode()
    assert SAMPLE_URL not in shown + client.get(page.url).content.decode()
    assert shown.count(settings.BASE_URL) >= page.file.read_text().count(SAMPLE_URL)


def test_page_about_banks_has_those_of_live_merchants_and_what_they_can() -> None:
    text = PAGES["which-bank"].file.read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    (names,) = [re.findall(r"`(\w+)`", "".join(row)) for row in rows if "`scb`" in "".join(row)]
    table = {row[0]: row[1:] for row in rows}
    assert names == list(banks.LIVE_BANKS)
    slips = ["yes" if issubclass(bank, banks.SlipLookup) else "no" for bank in banks.LIVE_BANKS.values()]
    assert table["check a slip"] == slips
    routes = [f"bank:{name}" for name in names]
    assert [not cell.startswith("no: ") for cell in table["refund by the service"]] == [
        route in banks.LIVE_SENDERS for route in routes
    ]
    pays_out = [route in banks.LIVE_SENDERS and not banks.is_void_only(route) for route in routes]
    assert [not cell.startswith("no: ") for cell in table["withdrawal by the service"]] == pays_out
