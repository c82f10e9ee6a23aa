"""Run a table of cases as one test that lists the failing cases."""

from __future__ import annotations

import functools
import inspect

import pytest


def every(names, cases, ids=None):
    """Like `pytest.mark.parametrize`, but as one test, without set-up for each case.

    Use it for tables whose only claim is that every case holds. All cases share a fixture.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [case if len(names) > 1 else (case,) for case in cases]
    labels = [ids(*row) if callable(ids) else repr(row)[:200] for row in rows]
    if ids is not None and not callable(ids):
        labels = [str(one) for one in ids]
    assert len(labels) == len(rows) > 0

    def decorate(test):
        @functools.wraps(test)
        def all_cases(**others):
            failures = []
            for label, row in zip(labels, rows, strict=True):
                try:
                    test(**dict(zip(names, row, strict=True)), **others)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are listed
                    failures.append(f"{label}: {type(error).__name__}: {error}")
            assert not failures, f"{len(failures)} of {len(rows)} cases:\n" + "\n".join(failures)

        parameters = inspect.signature(test).parameters.values()
        fixtures = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p.name not in names]
        all_cases.__signature__ = inspect.Signature(fixtures)
        return all_cases

    return decorate
