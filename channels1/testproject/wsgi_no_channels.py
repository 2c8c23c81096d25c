import os

from django.core.wsgi import get_wsgi_application

os.environ["DJANGO_SETTINGS_MODULE"] = "testproject.settings.no_channels"
application = get_wsgi_application()
