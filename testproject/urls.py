"""Django's paths. Those of the consumers are here too, with an answer for servers without ASGI."""

from django.urls import path, re_path

from testproject import views

urlpatterns = [
    path("", views.hello),
    path("render_name/", views.render_name),
    path("render_table/", views.render_table),
    path("render_twice/", views.render_twice),
    path("lookup/", views.lookup),
    path("healthz", views.healthz),
    path("digest/", views.digest),
    path("smoke/", views.smoke),
    path("consumer/", views.channels_only),
    re_path(r"^relay/", views.channels_only),
    path("poll/", views.channels_only),
    path("publish/", views.channels_only),
    path("topics/", views.topics),
    re_path(r"^ws/", views.websocket_only),
]
