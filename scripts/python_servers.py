"""A trained model behind a Python server, as a careful user would write it: what bench_serve.py compares `settrain serve` with.

    python python_servers.py http|fastapi torch|onnxruntime MODEL FILE THREADS CORES

MODEL is torchvision's name, FILE what `settrain export` wrote. Prints a line with the address when it listens.
"""

import http.server
import io
import itertools
import json
import socket
import sys
import threading
import time

import torch

RULE, SET_SIZE = "top:5", 5


class PythonModel:
    """An exported model in torchvision or ONNX Runtime, from the bytes of an image file to the answer that `settrain serve` gives."""

    def __init__(self, engine, name, file, threads, cores):
        import torchvision
        from safetensors import safe_open
        from torchvision.transforms import v2

        with safe_open(file, "pt") as exported:
            card = json.loads(exported.metadata()["card"])
            weights = {key: exported.get_tensor(key) for key in exported.keys()}
        torch.set_num_threads(threads)
        self.names = card["classes"]
        self.model = torchvision.models.get_model(name, num_classes=len(self.names)).eval()
        self.model.load_state_dict(weights)
        height, width = card["input"]
        self.transform = v2.Compose([
            v2.Resize(max(height, width) * 8 // 7), v2.CenterCrop((height, width)), v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True), v2.Normalize(card["mean"], card["std"]),
        ])  # fmt: skip
        # Requests that compute at once, each with threads of its own, would take more than the cores there are.
        self.turns = threading.BoundedSemaphore(max(1, cores // threads))
        example = torch.randn(1, 3, height, width)
        self.scores = {"torch": self._torch, "onnxruntime": self._onnx_runtime}[engine](example, threads)

    def _torch(self, example, _threads):
        """In the memory format that is faster."""

        def scores(images, memory_format):
            with torch.inference_mode():
                return self.model(images.contiguous(memory_format=memory_format))

        def seconds(memory_format):
            self.model.to(memory_format=memory_format)
            stamps = []
            for _ in range(9):
                scores(example, memory_format)
                stamps.append(time.perf_counter())
            return min(after - before for before, after in itertools.pairwise(stamps))

        best = min((torch.contiguous_format, torch.channels_last), key=seconds)
        self.model.to(memory_format=best)
        return lambda images: scores(images, best)

    def _onnx_runtime(self, example, threads):
        import onnxruntime

        file = io.BytesIO()
        torch.onnx.export(self.model, (example,), file, dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return lambda images: torch.from_numpy(session.run(None, {name: images.numpy()})[0])

    def answer(self, photograph):
        """JSON."""
        from PIL import Image

        pixels = self.transform(Image.open(io.BytesIO(photograph)).convert("RGB")).unsqueeze(0)
        with self.turns:
            probabilities, classes = self.scores(pixels).softmax(1).topk(SET_SIZE)
        classes = classes[0].tolist()
        answer = {"size": len(classes), "names": [self.names[c] for c in classes], "classes": classes,
                  "probabilities": probabilities[0].tolist()}  # fmt: skip
        return json.dumps({"images": 1, "sets": {RULE: answer}}).encode()


def serve_http(model, ready):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections
        wbufsize = -1  # head and body in one packet: apart, the second waits for a late acknowledgement, 40 ms
        disable_nagle_algorithm = True

        def do_POST(self):
            body = model.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            for header in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        ready(server.server_port)
        server.serve_forever()


def serve_fastapi(model, ready):
    import fastapi
    import uvicorn

    app = fastapi.FastAPI()

    async def body_of(request: fastapi.Request):
        return await request.body()

    @app.post("/predict")
    def predict(body=fastapi.Depends(body_of)):  # not async: in a thread, while the event loop takes other requests
        return fastapi.Response(model.answer(body), media_type="application/json")

    listener = socket.create_server(("127.0.0.1", 0))
    ready(listener.getsockname()[1])
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    kind, engine, name, file, *numbers = sys.argv[1:]
    served = PythonModel(engine, name, file, *map(int, numbers))
    serve_python = {"http": serve_http, "fastapi": serve_fastapi}[kind]
    serve_python(served, lambda port: print(f"Serving {name} at http://127.0.0.1:{port}", flush=True))
