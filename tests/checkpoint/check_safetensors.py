"""The Python side of safetensors_python_test.cpp. Usage: read FILE | write FILE."""
import re
import sys

import numpy
import safetensors
from safetensors.numpy import save_file

COUNTING = numpy.arange(-3, 3).reshape(2, 3)
DTYPES = {"Double": "F64", "Float": "F32", "Half": "F16", "Long": "I64", "Int": "I32", "Short": "I16", "Char": "I8",
          "Byte": "U8", "Bool": "BOOL"}
NUMPY = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1",
         "BOOL": "?"}


def read(file):
    with safetensors.safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata()
    assert re.fullmatch("[0-9a-f]{64}", metadata.pop("sha256"))
    assert metadata == {"kind": "settrain checkpoint", "format_version": "1", "config": "seed: 4  # é\n"}, metadata
    with open(file, "rb") as opened:
        tensors = dict(safetensors.deserialize(opened.read()))
    assert len(tensors) == 12, sorted(tensors)
    for name, dtype in DTYPES.items():
        tensor = tensors["model." + name]
        assert tensor["dtype"] == dtype and tensor["shape"] == [2, 3], (name, tensor)
        values = numpy.frombuffer(tensor["data"], NUMPY[dtype]).reshape(2, 3)
        assert numpy.array_equal(values, COUNTING.astype(NUMPY[dtype])), (name, values)
    # NumPy has no bfloat16: it is the upper half of a float32.
    half = tensors["model.BFloat16"]
    values = (numpy.frombuffer(half["data"], "u2").astype("u4") << 16).view("f4").reshape(2, 3)
    assert half["dtype"] == "BF16" and numpy.array_equal(values, COUNTING), values
    assert tensors["model.empty"]["shape"] == [0, 3]
    assert tensors["state.step"]["shape"] == []
    assert numpy.frombuffer(tensors["state.step"]["data"], "i8")[0] == 1 << 40


def write(file):
    tensors = {name: COUNTING.astype(name) for name in ["float32", "float16", "int64", "bool"]}
    tensors["scalar"] = numpy.array(2.5)
    save_file(tensors, file, {"made by": "Python"})


{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
