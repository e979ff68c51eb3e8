"""The parts of the OpenAPI document that many operations share."""

from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
PARTS: Json = yaml.load(Path(__file__).with_name("components.yaml").read_text(), yaml.CSafeLoader)
