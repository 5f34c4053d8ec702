# docker build -t colbert-prf .
# docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -v "$PWD/my.index:/indexes/my.index" colbert-prf /indexes/my.index
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/colbert-prf \
 && /opt/colbert-prf/bin/pip install --no-cache-dir --constraint constraints.txt ".[server]"

FROM python:3.12-slim
COPY --from=build /opt/colbert-prf /opt/colbert-prf
RUN useradd --uid 10001 --create-home colbert && mkdir /indexes && chown colbert /indexes
USER 10001
# The root may be read-only: everything that is written goes to /tmp or to the indexes.
ENV NUMBA_CACHE_DIR=/tmp/numba PYTHONDONTWRITEBYTECODE=1 PATH=/opt/colbert-prf/bin:$PATH
EXPOSE 8000
HEALTHCHECK --start-period=120s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["colbert-prf", "serve", "--host", "0.0.0.0"]
