"""Problems as answers: every error of every route is problem+json, and none is a bare 500."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from frontend_loop.reading import invalid, pointer
from shared.errors import Problem, RedisAwayError, unavailable
from shared.logs import get
from shared.redis import ReplyError

log = get(__name__)

_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "wrong_content_type"}


def answer(problem: Problem, instance: str | None) -> Response:
    """The HTTP answer of a problem."""
    response = Response(problem.body(instance), problem.status, media_type="application/problem+json")
    for name, value in problem.headers()[1:]:
        response.headers[name.decode()] = value.decode()
    return response


def install(app: FastAPI) -> None:
    """Let the app answer with problems only."""

    @app.exception_handler(Problem)
    async def _problem(request: Request, problem: Problem) -> Response:
        return answer(problem, request.url.path)

    @app.exception_handler(RedisAwayError)
    async def _away(request: Request, error: RedisAwayError) -> Response:
        return answer(unavailable(str(error)), request.url.path)

    @app.exception_handler(ReplyError)
    async def _damaged(request: Request, error: ReplyError) -> Response:
        log.error("redis refused", path=request.url.path, error=str(error))
        detail = "Redis refused what this needs: a key of it is damaged; the log says why"
        return answer(unavailable(detail), request.url.path)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [{"pointer": pointer(list(fault["loc"])), "detail": str(fault["msg"])} for fault in error.errors()]
        return answer(invalid(faults), request.url.path)

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        code = _CODES.get(error.status_code, "internal")
        problem = Problem(code, _detail(request, error))
        problem.status = error.status_code
        response = answer(problem, request.url.path)
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> Response:
        log.error("unexpected", path=request.url.path, exc_info=error)
        return answer(Problem("internal", "an error of ours, logged; nothing was promised"), request.url.path)


def _detail(request: Request, error: HTTPException) -> str:
    """What the framework itself refuses says no more than its number."""
    match error.status_code:
        case 404:
            return "nothing is here: /docs lists all that there is"
        case 405:
            allowed = (error.headers or {}).get("Allow", "nothing")
            return f"{request.method} is not taken here, but {allowed}"
        case _:
            return str(error.detail)
