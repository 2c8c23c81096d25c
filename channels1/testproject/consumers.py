"""Consumers in the idiom of Channels 1: a function for each kind of message."""

import channels


def http(message):
    """Answer without Django's views and middleware."""
    headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"2")]
    message.reply_channel.send({"status": 200, "headers": headers, "content": b"OK"})


def connect(message):
    # Channels 0.17 accepts by itself, and its Daphne knows no such key.
    if not channels.__version__.startswith("0."):
        message.reply_channel.send({"accept": True})


def echo(message):
    """Send what came back as it came, text or bytes."""
    kind = "text" if message.content.get("text") is not None else "bytes"
    message.reply_channel.send({kind: message.content[kind]})
