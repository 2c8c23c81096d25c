import sys

from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Site


class Hello(Resource):
    isLeaf = True  # noqa: N815 - the name is Twisted's

    def render_GET(self, request):  # noqa: N802 - the name is Twisted's
        request.setHeader(b"Content-Type", b"text/plain")
        return b"OK"


class Quiet(Site):
    def log(self, request):
        """Log nothing for a request that went well, as every other server here."""


if __name__ == "__main__":
    host, port, backlog = sys.argv[1:]
    reactor.listenTCP(int(port), Quiet(Hello()), interface=host, backlog=int(backlog))
    reactor.run()
