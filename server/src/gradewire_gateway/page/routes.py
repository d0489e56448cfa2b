"""The routes of the page, as the app takes them."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gradewire_gateway.gateway import Gateway
from gradewire_gateway.page.access import ACCESS_PATH, Access
from gradewire_gateway.page.files import PageFile, page_files
from gradewire_gateway.page.report import REPORT_PATH, Report
from gradewire_gateway.requests import record_of


def page_routes(gateway: Gateway) -> list[Route]:
    """The page, its files, who may use it, and its reports; none where the setting says so."""
    if not gateway.settings.page:
        return []
    access, report = Access(gateway), Report(gateway)
    return [
        *(_route(file.path, _sending(file)) for file in page_files()),
        _route(ACCESS_PATH, access.shown),
        _route(REPORT_PATH, report.made, "POST"),
    ]


def _sending(file: PageFile) -> Callable[[Request], Awaitable[Response]]:
    async def sending(request: Request) -> Response:
        return file.response(request)

    return sending


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str = "GET") -> Route:
    async def noted(request: Request) -> Response:
        record_of(request.scope).route = path
        return await endpoint(request)

    return Route(path, noted, methods=[method])
