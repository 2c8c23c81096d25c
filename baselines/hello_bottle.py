from bottle import Bottle, response

application = Bottle()


@application.get("/")
def hello():
    response.content_type = "text/plain"
    return b"OK"
