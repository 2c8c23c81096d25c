from django.core.wsgi import get_wsgi_application

from .entry import settle

settle("testproject.settings.no_channels")
application = get_wsgi_application()
