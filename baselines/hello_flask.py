from flask import Flask, Response

application = Flask(__name__)


@application.get("/")
def hello():
    return Response(b"OK", content_type="text/plain")
