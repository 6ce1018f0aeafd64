"""asgi.py - middleware that marks the requests of an ASGI application."""

import whyoom

FULL = 2  # starlette.routing.Match.FULL


def route(scope):
    """ "GET /items/{id}" where the application has routes (FastAPI, Starlette), else "GET": a
    fixed word for all requests of a kind, never what a user sent."""
    word = scope.get("method", scope["type"])
    for one in getattr(scope.get("app"), "routes", ()):
        if one.matches(scope)[0].value == FULL:
            return f"{word} {one.path}"
    return word


class Middleware:
    """app.add_middleware(Middleware) in FastAPI and Starlette, Middleware(app) elsewhere. `name`
    is a function of the scope; the default is route()."""

    def __init__(self, app, name=route):
        self.app, self.name = app, name

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket") or not whyoom.recording():
            return await self.app(scope, receive, send)
        with whyoom.request(self.name(scope)):
            return await self.app(scope, receive, send)
