# The service of an exported model, without torch:
#   docker build -t mvlstm-serve .
#   docker run -p 8000:8000 -e MVLSTM_TOKEN=$(openssl rand -hex 32) -v "$PWD/model.onnx:/model.onnx:ro" mvlstm-serve
FROM python:3.13-slim AS build
WORKDIR /source
COPY constraints.txt LICENSE ./
COPY src ./src
COPY supply/runtime ./supply/runtime
RUN python -m venv /service \
    && /service/bin/pip install --no-cache-dir --constraint constraints.txt './supply/runtime[serve]' \
    && /service/bin/pip uninstall --yes pip

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin mvlstm
COPY --from=build /service /service
USER 10001
ENV OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s \
    CMD ["/service/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
# Anyone who can reach the port needs the token in MVLSTM_TOKEN; without one the service does not start.
ENTRYPOINT ["/service/bin/mvlstm", "serve"]
CMD ["/model.onnx", "--host", "0.0.0.0", "--port", "8000"]
