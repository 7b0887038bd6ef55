# The program from its wheel, on the CPU. From the root of the tree, after scripts/wheel:  docker build -t settrain -f Dockerfile dist
FROM debian:13-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv curl ca-certificates unzip gnuplot-nox dataset-fashion-mnist && \
    rm -rf /var/lib/apt/lists/*
COPY settrain-*.whl /tmp/
RUN python3 -m venv /opt/settrain && /opt/settrain/bin/pip install --no-cache-dir /tmp/settrain-*.whl && rm /tmp/settrain-*.whl
ENV PATH=/opt/settrain/bin:$PATH
WORKDIR /data
ENTRYPOINT ["settrain"]
