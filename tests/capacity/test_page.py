"""The page of HTML: whole, without anything from elsewhere."""

import re
from xml.etree import ElementTree

from config.capacity import page, plots, verdict
from config.capacity.plots import Frame, Line
from tests.capacity import made_up

FIGURES = made_up.figures(made_up.samples(3.0, web=1.9, postgres=1.0, webhooks=0.2))


def test_page_loads_nothing_and_has_each_plot() -> None:
    html = page.report(FIGURES, verdict.judge(FIGURES), "2026-11-26 10:00")
    assert not re.search(r"https?://|src=|url\(|@import|<script|<link", html)
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(pictures) == 4
    for picture in pictures:
        assert ElementTree.fromstring(picture).attrib["role"] == "img"
    assert "Set WEB_WORKERS=4" in html
    assert "prefers-color-scheme: dark" in html


def test_page_without_proc_leaves_out_the_plot_over_time() -> None:
    figures = made_up.figures(made_up.samples(0.0))
    figures.samples.processors.clear()
    html = page.report(figures, verdict.judge(figures), "2026-11-26 10:00")
    assert html.count("<svg") == 3


def test_areas_stand_on_each_other_inside_the_axes() -> None:
    frame = Frame("cores", "seconds", "cores", [(0, "0")], most_x=10, most_y=4)
    picture = plots.areas(frame, [Line("a", [(0, 1), (10, 1)]), Line("b", [(0, 3), (10, 3)])])
    lower, upper = re.findall(r'points="([^"]*)"', picture)
    assert lower.split()[0] == f"{frame.x(0):.1f},{frame.y(1):.1f}"
    assert upper.split()[0] == f"{frame.x(0):.1f},{plots.TOP:.1f}"


def test_names_are_escaped() -> None:
    frame = Frame("a", "x", "y", [(0, "<b>")], 1, 1)
    picture = plots.lines(frame, [Line("<i>", [(0, 0)]), Line("b", [(1, 1)])])
    assert "<b>" not in picture
    assert "&lt;i&gt;" in picture


def test_axis_ends_at_a_short_number() -> None:
    assert [plots.round_up(value) for value in (0, 0.3, 9, 12, 430)] == [1, 0.4, 10, 20, 500]
