"""Reads docs/scale.md, whose tables are the only list of what could not be spread over servers."""

import re

from tests.stack import ROOT

TEXT = (ROOT / "docs" / "scale.md").read_text()
SECTION = re.compile(r"^### (?P<title>.+?)\n(?P<body>.*?)(?=^##|\Z)", re.M | re.S)
ROW = re.compile(r"^\| (?P<names>`.*?) \| (?P<reason>.+?) \|$", re.M)


def listed(title: str) -> set[str]:
    """The names in the first column of the section. Each stands there once, with a reason."""
    (body,) = [found["body"] for found in SECTION.finditer(TEXT) if found["title"] == title]
    names = [name for row in ROW.finditer(body) for name in re.findall(r"`([^`]+)`", row["names"])]
    assert len(names) == len(set(names)), f"{title}: a name stands there twice"
    return set(names)
