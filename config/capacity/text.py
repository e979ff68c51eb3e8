"""The report as text."""

import textwrap
from collections.abc import Iterator

from config.capacity import verdict
from config.capacity.measuring import Figures, Step
from config.capacity.verdict import SHARE_TO_PLAN, Verdict

WIDTH = 100
GB = 1_000_000_000


def report(figures: Figures, judged: Verdict) -> str:
    parts = [
        machine(figures),
        "",
        *(f"  {name:<24}{value:>14}   {note}" for name, value, note in rows(figures)),
        "",
        "  payments at once   whole lives a second   99 of 100 requests   99 of 100 webhooks",
        *(_step(step) for step in figures.steps),
        "",
        f"  busy at {figures.best.at_once} at once",
        *(f"  {each.name:<32}{each.busy:>6.0%}" for each in judged.resources),
        "",
        *textwrap.wrap(f"Ends first: {ends_first(judged)}.", WIDTH),
        *textwrap.wrap(f"Add first: {judged.advice}", WIDTH, subsequent_indent="  "),
        *textwrap.wrap(plan(figures), WIDTH),
    ]
    return "\n".join(parts) + "\n"


def machine(figures: Figures) -> str:
    place = "on this machine" if figures.has_local_postgres else "elsewhere"
    return (
        f"This machine has {figures.cores} cores, web {figures.web_workers} processes, "
        f"PostgreSQL runs {place}, a commit takes {figures.commit_ms:.1f} ms."
    )


def rows(figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Name, value and note of each main figure."""
    best, codes = figures.best, figures.codes
    row_count, size = figures.growth.rows / figures.lives, figures.growth.bytes / figures.lives
    yield (
        "whole lives a second",
        f"{best.rate:,.0f}",
        f"code, payment at the bank, webhook, poll; {best.at_once} payments at once",
    )
    yield "codes a second", f"{codes.rate:,.0f}", f"99 of 100 in {codes.result.quantile(0.99):,.0f} ms"
    yield "deliveries a second", f"{figures.deliveries.rate:,.0f}", "webhooks of one commit to one endpoint"
    yield (
        "rows a day",
        f"{verdict.rows_a_day(figures):,.0f}",
        f"{row_count:.0f} rows of the database for a payment, all day at this rate",
    )
    yield (
        "disk a day",
        f"{verdict.bytes_a_day(figures) / GB:,.1f} GB",
        f"{size / 1000:.1f} kB for a payment with indexes, without the write-ahead log",
    )


def ends_first(judged: Verdict) -> str:
    return f"{judged.first.name}, {judged.first.busy:.0%} busy" if judged.first else "nothing"


def plan(figures: Figures) -> str:
    return (
        f"Plan for {SHARE_TO_PLAN * figures.best.rate:,.0f} whole lives a second at the busiest minute: "
        "a release, a lost process and staff need the other half."
    )


def _step(step: Step) -> str:
    latencies = f"{step.request_p99:>15,.0f} ms   {step.webhook_p99:>15,.0f} ms"
    return f"  {step.at_once:>16}   {step.rate:>20,.0f}   {latencies}"
