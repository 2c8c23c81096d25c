"""Configuration of gunicorn's ASGI worker that has no command line option."""


def post_worker_init(worker):
    """Listen with the backlog that gunicorn was given.

    Its ASGI worker (27.0) hands the listening socket to the event loop without one, and the loop
    then sets it to asyncio's 100.
    """
    create_server = worker.loop.create_server
    worker.loop.create_server = lambda *args, **options: create_server(
        *args, **{"backlog": worker.cfg.backlog, **options}
    )
