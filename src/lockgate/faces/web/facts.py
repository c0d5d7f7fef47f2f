"""What programs read: the facts as JSON, as every face has them, and figures for Prometheus."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lockgate.bootstrap.outside import measures_of
from lockgate.core.model.task import ProjectId, TaskId
from lockgate.errors import LockgateError, NoSuchTask
from lockgate.faces.web.site import Site, wanted
from lockgate.faces.web.stats import asked_for
from lockgate.faces.words.task import one_line
from lockgate.services.task.measures import Measure

PREFIX = "lockgate_"


def api(site: Site, request: Request) -> Response:
    try:
        facts = _FACTS[request.path_params["what"]](site, request)
    except KeyError:
        return JSONResponse({"error": {"what": "nothing was shown", "why": "no such facts"}}, 404)
    except LockgateError as error:
        status = 404 if isinstance(error, NoSuchTask) else 422
        told = {"what": error.what, "why": error.why, "fix": error.fix}
        return JSONResponse({"error": told}, status)
    return Response(json.dumps(facts, default=str), media_type="application/json")


def _board(site: Site, request: Request) -> object:
    asked = request.query_params
    which = wanted(asked)
    return site.app_of(request).boards.board(which, asked.get("after") or None).facts()


def _inbox(site: Site, request: Request) -> object:
    return site.app_of(request).boards.inbox().facts()


def _task(site: Site, request: Request) -> object:
    app, id = site.app_of(request), TaskId(request.path_params["rest"])
    return app.boards.page(site.row(app, id).id).facts()


def _stats(site: Site, request: Request) -> object:
    return asked_for(site, request)[1].facts()


def _train(site: Site, request: Request) -> object:
    id = ProjectId(request.path_params["rest"])
    return site.app_of(request).train_boards.of(id).facts()


_FACTS: dict[str, Callable[[Site, Request], object]] = {
    "board": _board,
    "inbox": _inbox,
    "task": _task,
    "train": _train,
    "stats": _stats,
}


def metrics(site: Site, request: Request) -> Response:
    app = site.app_of(request)
    standings = app.train_boards.standings(site.trains)
    needs = app.boards.inbox().needs
    found = measures_of(app).all(needs, standings, site.counted, app.fleet())
    text = "".join(_lines(found))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _lines(measures: Iterable[Measure]) -> Iterator[str]:
    for it in measures:
        name = f"{PREFIX}{it.name}"
        yield f"# HELP {name} {it.says}\n# TYPE {name} {it.kind}\n"
        for sum in it.sums:
            value = f"{sum.value:.6f}".rstrip("0").rstrip(".")
            yield f"{name}{sum.part}{_labels(sum.labels)} {value}\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(it)}"' for key, it in labels.items()) + "}"


def _escaped(text: str) -> str:
    return one_line(text).replace("\\", "\\\\").replace('"', '\\"')
