import cherrypy


class Hello:
    @cherrypy.expose
    def index(self):
        cherrypy.response.headers["Content-Type"] = "text/plain"
        return b"OK"


# Left at its defaults, CherryPy logs each request and adds a charset to the content type.
cherrypy.config.update({"environment": "production", "log.screen": False})
application = cherrypy.Application(Hello(), config={"/": {"tools.encode.on": False}})
application.log.access_log.disabled = True
