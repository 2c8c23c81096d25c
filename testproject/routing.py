"""Which consumer serves which path, and which one serves which named channel."""

from django.urls import path, re_path

from testproject import consumers, relay, topics, worker

http_routes = [
    path("consumer/", consumers.HelloConsumer.as_asgi()),
    re_path(r"^relay/", consumers.RelayConsumer.as_asgi()),
    path("poll/", topics.poll_consumer().as_asgi()),
    path("publish/", topics.PublishConsumer.as_asgi()),
]

websocket_routes = [
    path("ws/echo/", consumers.EchoConsumer.as_asgi()),
    path("ws/relay/", consumers.RelayEchoConsumer.as_asgi()),
    path("ws/topics/", topics.socket_consumer().as_asgi()),
    re_path(r"^ws/room/(?P<name>[-.0-9A-Z_a-z]{1,80})/$", consumers.RoomConsumer.as_asgi()),
    re_path(r"", consumers.NoSuchSocket.as_asgi()),
]

channel_routes = {relay.CHANNEL: worker.relay_worker}
