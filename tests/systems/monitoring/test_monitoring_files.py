"""Alert rules, their runbook and the dashboard in deploy/monitoring. promtool judges them if it exists."""

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from operations.metrics.families import PREFIX
from tests.operations.metrics.scraping import families

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy" / "monitoring"
RULES = FOLDER / "thaiqr.rules.yml"
# The second file has those that wait for a day: it evaluates less often.
TESTS = [FOLDER / "thaiqr.tests.yml", FOLDER / "thaiqr.days.tests.yml"]
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is missing: apt install prometheus")


def promtool(*arguments: str) -> str:
    done = subprocess.run(
        [str(PROMTOOL), *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES.name)


@needs_promtool
def test_promtool_accepts_the_configuration() -> None:
    """Without --syntax-only it looks for the file of the token."""
    assert "is valid" in promtool("check", "config", "--syntax-only", "prometheus.yml")


@needs_promtool
@pytest.mark.slow
def test_each_alert_fires_on_its_series_and_not_before() -> None:
    tested = [case["alertname"] for each in cases() for case in each["alert_rule_test"]]
    assert set(tested) == {alert["alert"] for alert in ALERTS}
    assert promtool("test", "rules", *(path.name for path in TESTS)).count("SUCCESS") == len(TESTS)


def cases() -> list[dict[str, Any]]:
    return [case for path in TESTS for case in yaml.safe_load(path.read_text())["tests"]]


@needs_promtool
def test_promtool_reads_each_query_of_the_dashboard(tmp_path: Path) -> None:
    """As recording rules, because promtool reads queries only in rules."""
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(EXPRESSIONS)
    ]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert f"{len(EXPRESSIONS)} rules found" in promtool("check", "rules", str(path))


def test_each_alert_has_its_section_in_the_runbook() -> None:
    page = (ROOT / "docs" / "alerts.md").read_text()
    sections = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert sections == [alert["alert"] for alert in ALERTS]
    for alert in ALERTS:
        assert alert["annotations"]["runbook"] == f"docs/alerts.md#{alert['alert'].lower()}"
        text = page.split(f"### {alert['alert']}\n")[1].split("\n#")[0]
        urgency = "Page" if alert["labels"]["severity"] == "page" else "Ticket"
        assert text.startswith(f"\n*{urgency}.*") and "\n- " in text, alert["alert"]


# Their names begin as those of metrics.
DATABASE_ROLES = {"thaiqr_owner", "thaiqr_app", "thaiqr_reports", "thaiqr_shop"}


def known_metrics() -> set[str]:
    """The names that Prometheus stores."""
    names = set()
    for name, family in families().items():
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names |= {f"{PREFIX}{name}{ending}" for ending in endings}
    return names


def test_rules_and_dashboard_name_existing_metrics_only(db: None) -> None:
    known = known_metrics()
    for query in [*EXPRESSIONS, *(alert["expr"] for alert in ALERTS)]:
        assert set(re.findall(rf"{PREFIX}\w+", query)) <= known, query
    for page in ("alerts.md", "operations.md"):
        text = (ROOT / "docs" / page).read_text()
        named = set(re.findall(rf"{PREFIX}\w+", text)) - DATABASE_ROLES
        assert named <= known | {name.removesuffix("_bucket") for name in known}, page


def test_dashboard_or_rules_use_every_metric(db: None) -> None:
    used = " ".join([*EXPRESSIONS, *(alert["expr"] for alert in ALERTS)])
    unused = {name for name in families() if f"{PREFIX}{name}" not in used}
    assert not unused


def test_dashboard_has_the_form_that_grafana_imports() -> None:
    assert re.fullmatch(r"[a-z-]{1,40}", DASHBOARD["uid"])
    (variable,) = DASHBOARD["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["title"] and panel["targets"]


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in itertools.combinations(places, 2):
        is_apart_across = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_apart_down = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_apart_across or is_apart_down, (one, other)
