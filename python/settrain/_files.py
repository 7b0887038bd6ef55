"""What kind of file a path leads to, and the metadata of safetensors files."""

import codecs
import json
import os
import zipfile
from typing import Any

CHECKPOINT = "settrain checkpoint"  # the metadata entry `kind` of checkpoints


def safetensors_metadata(path: "str | os.PathLike[str]") -> dict[str, Any] | None:
    """The metadata of a safetensors file, empty where it has none. None for a file of another format. OSError where it cannot be read."""
    with open(path, "rb") as stream:
        header = stream.read(_header_length(stream.read(8)))
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        return None
    metadata = found.get("__metadata__", {}) if isinstance(found, dict) else None
    return metadata if isinstance(metadata, dict) else None


def _header_length(start: bytes) -> int:
    """The length of a safetensors file's header by the first 8 bytes; 0 for a file of another format."""
    most = 100_000_000  # the limit of the safetensors package
    length = int.from_bytes(start, "little")
    return length if len(start) == 8 and length <= most else 0


def is_exported(metadata: dict[str, Any]) -> bool:
    """Whether the metadata of a safetensors file are those of a file that `settrain export` wrote."""
    return "card" in metadata and metadata.get("kind") != CHECKPOINT


def kind_of(path: "str | os.PathLike[str]", metadata: dict[str, Any] | None) -> str:
    """Names the format or the writer of a file that is not the wanted one, for a message. `metadata`: what safetensors_metadata() gave."""
    if metadata is not None:
        if metadata.get("kind") == CHECKPOINT:
            return "a checkpoint of a run"
        return "a damaged file of `settrain export`" if is_exported(metadata) else "a safetensors file that `settrain export` did not write"
    if os.fspath(path).lower().endswith(".onnx"):
        return "an ONNX graph"
    with open(path, "rb") as stream:
        start = stream.read(1000)
    if not start:
        return "an empty file"
    if start.startswith(b"PK"):
        return _kind_of_archive(path)
    if start.startswith(b"\x93NUMPY"):
        return "an array of numpy.save()"
    if start.startswith(b"\x80"):
        return "a pickle, such as those of torch.save()"
    if _header_length(start[:8]) and start[8:9] == b"{":
        return "a safetensors file that is cut off or damaged"
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # takes a character that is cut at the end
    except UnicodeDecodeError:
        return "a file of another format"
    if "\0" in text:
        return "a file of another format"
    return "a JSON file" if text.lstrip()[:1] in ("{", "[") else "a text file"


def _kind_of_archive(path: "str | os.PathLike[str]") -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return "a zip archive that is cut off or damaged"
    if any(name.endswith("/data.pkl") for name in names):
        return "a file of torch.save()"
    return "an archive of numpy.savez()" if names and all(name.endswith(".npy") for name in names) else "a zip archive"
