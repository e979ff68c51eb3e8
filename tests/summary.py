"""Pytest plugin: what a run left out for which reason, and which tests failed once and then passed.

`make test` runs a failed test once more (`--reruns`). A test of this list is a fault of the test or of the
product: something depends on luck.
"""

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    skipped: list[pytest.TestReport] = stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple))
    for reason, number in reasons.most_common():
        terminalreporter.line(f"LEFT OUT {number}: {reason.removeprefix('Skipped: ')}", yellow=True)
    failed_twice = {report.nodeid for name in ("failed", "error") for report in stats.get(name, [])}
    first_runs: list[pytest.TestReport] = stats.get("rerun", [])
    for report in first_runs:
        result = "failed again" if report.nodeid in failed_twice else "unsteady: passed when run again"
        terminalreporter.section(f"first run of {report.nodeid} ({result})")
        terminalreporter.line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.section(title, "-")
            terminalreporter.line(text)
    for report in first_runs:
        if report.nodeid not in failed_twice:
            terminalreporter.line(f"UNSTEADY {report.nodeid}", yellow=True)
