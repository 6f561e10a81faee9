# The image of tsctl, which takes the words and files that TorchServe's image takes (docs/guides/docker.md).
#
#   docker build --tag tsctl .
#   docker build --tag tsctl:cuda --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu128 .
#
# BASE         any image with Python 3.11 or newer and its `venv`, of Debian's kind
# TORCH        what pip installs first, a layer of its own: a new tsctl does not move it
# TORCH_INDEX  an index of pip with torch for the processor or a version of CUDA; empty for pip's own
# EXTRAS       extras of tsctl, separated by commas
# COMPILE      1 compiles what every request passes through, 0 does not; then no C compiler is needed
#
# `--secret id=pip,src=FILE` gives pip a configuration while the image is built; no layer holds the file.
ARG BASE=python:3.13-slim-trixie

FROM ${BASE} AS python
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

FROM python AS libraries
ARG TORCH="torch torchvision"
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG EXTRAS=grpc
RUN python3 -m venv /opt/tsctl
# TORCH is words.
# hadolint ignore=SC2086
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    /opt/tsctl/bin/pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "${TORCH_INDEX}"} ${TORCH} \
    && /opt/tsctl/bin/pip freeze > /torch.txt
COPY pyproject.toml /
# The libraries of pyproject.toml, before tsctl itself, and without another torch than the one above.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    /opt/tsctl/bin/python -c 'import sys, tomllib; \
project = tomllib.load(open("/pyproject.toml", "rb"))["project"]; \
extras = [extra for extra in sys.argv[1].split(",") if extra]; \
print(*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra]), sep="\n")' \
    "${EXTRAS}" > /libraries.txt \
    && /opt/tsctl/bin/pip install --no-cache-dir --constraint /torch.txt --requirement /libraries.txt

FROM python AS wheel
ARG COMPILE=1
ARG COMPILER="gcc libc6-dev"
# Nothing of the compiler is in the image, so its version is that of the base; COMPILER is words.
# hadolint ignore=DL3008,SC2086
RUN test "${COMPILE}" = 0 || { apt-get update && apt-get install -y --no-install-recommends ${COMPILER} && rm -rf /var/lib/apt/lists/*; }
COPY . /source
WORKDIR /source
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    python3 -m venv /build && TSCTL_COMPILE="${COMPILE}" /build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python
LABEL org.opencontainers.image.title="tsctl" \
      org.opencontainers.image.description="Serves PyTorch models with dynamic batching: the successor of TorchServe" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=libraries /opt/tsctl /opt/tsctl
# `torchserve` is a program of the image only: as a script of the wheel it would overwrite that of an installed TorchServe.
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    /opt/tsctl/bin/pip install --no-cache-dir --no-index --no-deps /wheels/*.whl \
    && printf '#!/bin/sh\nexec /opt/tsctl/bin/python -P -m %s "$@"\n' tsctl.container > /usr/local/bin/dockerd-entrypoint.sh \
    && printf '#!/bin/sh\nexec /opt/tsctl/bin/python -P -m %s "$@"\n' tsctl.container.torchserve > /usr/local/bin/torchserve \
    && chmod 755 /usr/local/bin/dockerd-entrypoint.sh /usr/local/bin/torchserve \
    && groupadd --gid 1000 model-server \
    && useradd --uid 1000 --gid 1000 --create-home model-server \
    && mkdir /home/model-server/model-store \
    && chown 1000:1000 /home/model-server/model-store
# The control socket and all state are below /tmp: nothing else has to be writable. A volume keeps registered models.
# USER is for libraries that look for a name: a cluster may run the image as a user without one.
ENV PATH=/opt/tsctl/bin:${PATH} \
    TSCTL_STATE_DIR=/tmp/tsctl-state \
    USER=model-server
WORKDIR /home/model-server
USER 1000:1000
# Predictions, gRPC (Open Inference Protocol), metrics, gRPC (TorchServe).
EXPOSE 8080 8081 8082 7070
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["/opt/tsctl/bin/python", "-P", "-m", "tsctl.container.health"]
ENTRYPOINT ["/usr/local/bin/dockerd-entrypoint.sh"]
CMD ["serve"]
