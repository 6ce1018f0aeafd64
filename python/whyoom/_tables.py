"""_tables.py - the lists of a report as rows, and as pandas' tables where pandas is there."""


def _stack(frames):
    return "; ".join(str(f) for f in frames)


def _row(item, **more):
    """The plain members of a part of the report; a stack as one text."""
    row = dict(more)
    for key, value in item.raw.items():
        if key == "stack":
            row[key] = _stack(item.stack)
        elif not isinstance(value, (dict, list)):
            row[key] = value
    return row


def _rows(items):
    return [_row(item) for item in items]


def tables(report):
    """{name: [row, ...]}, a row being a dictionary. Names stay when a list is empty."""
    requests = report.requests
    return {
        "processes": [_row(p, end=p.end.how, end_code=p.end.code) for p in report.processes],
        "memory": [_row(m, pid=p.pid) for p in report.processes for m in p.memory],
        "ledger": [_row(r, space=ledger.space, pid=ledger.pid, limit_kind=ledger.limit_kind,
                        at=ledger.at)
                   for ledger in report.ledger for r in ledger.rows],
        "recovered": _rows(report.recovered),
        "evidence": _rows(report.verdict.evidence),
        "fixes": _rows(report.verdict.fixes),
        "candidates": _rows(report.verdict.candidates),
        "what_if": _rows(report.what_if),
        "spaces": _rows(report.spaces),
        "phases": _rows(report.phases),
        "stages": _rows(report.stages),
        "requests": ([_row(r, in_flight=True) for r in requests.in_flight]
                     + [_row(r, in_flight=False) for r in requests.ended]) if requests else [],
        "sites": [_row(s, space=d.space)
                  for d in ((report.device,) if report.device else ()) + report.other_devices
                  for s in d.sites],
    }


def frames(report, name=None):
    """pandas.DataFrame of a table, or of each."""
    import pandas
    made = tables(report)
    if name is None:
        return {key: pandas.DataFrame(rows) for key, rows in made.items()}
    if name not in made:
        raise KeyError(f"there is no table '{name}'; there are {', '.join(made)}")
    return pandas.DataFrame(made[name])
