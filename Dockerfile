# One image for the Prefect server, the service, the workers and the command line.
# Build the client into it: --build-arg CLIENT=git+https://github.com/mlcommons/endpoints@COMMIT
FROM python:3.12.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/pareto
COPY requirements.lock pyproject.toml README.md /src/
COPY core /src/core
COPY tasks /src/tasks
COPY flows /src/flows
# The locked versions of what pareto needs, without what only its tests need.
RUN /opt/pareto/bin/pip install --constraint /src/requirements.lock /src
# The official client has dependencies of its own: an environment of its own, and none by default.
ARG CLIENT=""
RUN python -m venv /opt/client && if [ -n "$CLIENT" ]; then /opt/client/bin/pip install "$CLIENT"; fi

FROM python:3.12.11-slim-bookworm
COPY --from=build /opt/pareto /opt/pareto
COPY --from=build /opt/client /opt/client
COPY deploy/entrypoint.sh /usr/local/bin/entrypoint
RUN useradd --uid 1000 --create-home pareto \
    && mkdir /data /state /campaigns && chown pareto:pareto /data /state
ENV PATH=/opt/pareto/bin:/opt/client/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PREFECT_HOME=/state/prefect \
    PREFECT_SERVER_ANALYTICS_ENABLED=false \
    DO_NOT_TRACK=1 \
    PARETO_STATE_DIR=/state
USER pareto
WORKDIR /data
VOLUME ["/data", "/state"]
ENTRYPOINT ["entrypoint"]
CMD ["pareto", "--help"]
