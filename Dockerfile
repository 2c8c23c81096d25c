# The application server and the workers of compose.yaml: docs/swarm.md.
#
#   docker build -t channels-test-project .
#   docker build -t channels-test-project --build-arg BASE=<any image with python3 and its venv> .
ARG BASE=python:3.13.5-slim-bookworm

FROM ${BASE} AS build
# How pip reaches the package index where that is not pip's own: --build-arg PIP_INDEX_URL=...
ARG PIP_INDEX_URL
ARG PIP_CERT
WORKDIR /build
COPY requirements.txt constraints.txt ./
# Of all that the project needs, an application server needs the first part.
RUN sed '/^# What measures/,$d' requirements.txt > served.txt \
    && python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check -r served.txt \
    && /opt/venv/bin/pip uninstall --yes --quiet pip

FROM ${BASE}
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/venv /opt/venv
WORKDIR /srv/project
COPY manage.py ./
COPY channels_hub channels_hub/
COPY channels_ipc channels_ipc/
COPY settings settings/
COPY testproject testproject/
RUN python3 -m compileall -q . && DJANGO_SETTINGS_MODULE=settings.no_channels python3 manage.py check
# A number, so that "must not be root" can be checked without looking into the image.
USER 10001:10001
EXPOSE 8000
