import asyncio
import sys

from tornado.web import Application, RequestHandler


class Hello(RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/plain")
        self.write(b"OK")

    def compute_etag(self):
        """No ETag: the page this is compared with has none."""


async def main(host, port, backlog):
    application = Application([("/", Hello)], log_function=lambda handler: None)
    application.listen(int(port), host, backlog=int(backlog))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
