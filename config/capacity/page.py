"""The report as a page of HTML, which loads nothing from elsewhere."""

from collections.abc import Iterator
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from config.capacity import plots, text
from config.capacity.lives import quantile
from config.capacity.measuring import Figures
from config.capacity.plots import Frame, Line
from config.capacity.processes import BANK, WEB
from config.capacity.sampling import LOAD, POSTGRES
from config.capacity.verdict import Verdict
from config.version import VERSION
from config.workers import WORKERS

TEMPLATE = "capacity/report.html"
QUANTILES = [number / 100 for number in range(0, 100, 2)] + [0.99]
# In the order of the picture, from below.
GROUPS = {
    "web": (WEB,),
    "PostgreSQL": (POSTGRES,),
    **{f"worker of {name}": (name,) for name in WORKERS},
    "shops and bank of the measurement": (LOAD, BANK),
}
OTHERS = "other programs"


def report(figures: Figures, judged: Verdict, made_at: str) -> str:
    context: dict[str, Any] = {
        "made_at": made_at,
        "version": VERSION,
        "machine": text.machine(figures),
        "rows": list(text.rows(figures)),
        "steps": figures.steps,
        "best": figures.best,
        "resources": [(each.name, round(100 * each.busy)) for each in judged.resources],
        "ends_first": text.ends_first(judged),
        "advice": judged.advice,
        "plan": text.plan(figures),
        "plots": list(_plots(figures)),
    }
    return render_to_string(TEMPLATE, context)


def _plots(figures: Figures) -> Iterator[tuple[str, SafeString]]:
    """Titles and pictures."""
    yield "Whole lives a second, by payments at once", _rates(figures)
    yield "99 of 100, in milliseconds, by payments at once", _latencies(figures)
    title = f"How long requests and webhooks took, {figures.best.at_once} at once"
    yield title, _distribution(figures)
    if figures.samples.processors:
        yield "Processors in use during the measurement", _over_time(figures)


def _rates(figures: Figures) -> SafeString:
    points = [(float(place), step.rate) for place, step in enumerate(figures.steps)]
    return plots.lines(_frame_of_steps(figures, "a second", max(y for _, y in points)), [Line("", points)])


def _latencies(figures: Figures) -> SafeString:
    requests = [(float(place), step.request_p99) for place, step in enumerate(figures.steps)]
    webhooks = [(float(place), step.webhook_p99) for place, step in enumerate(figures.steps)]
    most = max(y for _, y in requests + webhooks)
    frame = _frame_of_steps(figures, "ms", most)
    return plots.lines(frame, [Line("requests", requests), Line("from the code to its webhook", webhooks)])


def _frame_of_steps(figures: Figures, y_label: str, most: float) -> Frame:
    ticks = [(float(place), str(step.at_once)) for place, step in enumerate(figures.steps)]
    return Frame(y_label, "payments at once", y_label, ticks, len(ticks) - 1, plots.round_up(most))


def _distribution(figures: Figures) -> SafeString:
    result = figures.best.result
    drawn = [
        Line(name, [(100 * share, quantile(seconds, share)) for share in QUANTILES])
        for name, seconds in {**result.requests, "from the code to its webhook": result.webhooks}.items()
    ]
    most = plots.round_up(max(y for line in drawn for _, y in line.points))
    ticks = [(float(share), f"{share}") for share in (0, 25, 50, 75, 99)]
    return plots.lines(Frame("ms", "of 100 are faster", "ms", ticks, 100, most), drawn)


def _over_time(figures: Figures) -> SafeString:
    begin = figures.phases[0][1]
    samples = [each for each in figures.samples.processors if each.at >= begin]

    def line(shown: str, names: tuple[str, ...]) -> Line:
        return Line(
            shown, [(each.at - begin, sum(each.cores.get(name, 0.0) for name in names)) for each in samples]
        )

    drawn = [line(shown, names) for shown, names in GROUPS.items()]
    # The kernel counts in steps of 10 ms, so a sample may have a little more than there is.
    rest = [
        (each.at - begin, max(0.0, min(each.machine, figures.cores) - sum(each.cores.values())))
        for each in samples
    ]
    last = samples[-1].at - begin if samples else 1.0
    ticks = [(last * part / 4, f"{last * part / 4:.0f}") for part in range(5)]
    frame = Frame("cores", "seconds", "cores", ticks, last, float(figures.cores))
    marks = [(at - begin, str(number)) for number, (_, at) in enumerate(figures.phases, 1)]
    return plots.areas(frame, [*drawn, Line(OTHERS, rest)], marks)
