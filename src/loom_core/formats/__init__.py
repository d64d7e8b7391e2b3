"""Formats of weights: layouts, and NumPy encoders and decoders. docs/formats.md is written from here.

    weights = encode(array, "int4_packed4", scaled=True, group=128)     # float [rows, columns] -> EncodedWeights
    decode(weights)                                                      # -> float32 [rows, columns]
    weights.to_bytes(), EncodedWeights.from_bytes(data, layout)          # the parts one after the other, checked

A matrix of weights has a row for each output channel; codes, groups and scales run along its columns, the k of a
product.
"""

from loom_core.formats.decode import decode, decode_integers
from loom_core.formats.encode import encode
from loom_core.formats.layout import Layout, layout
from loom_core.formats.table import FORMATS, TableScope, WeightFormat, weight_format
from loom_core.formats.weights import EncodedWeights

__all__ = [
    "FORMATS",
    "EncodedWeights",
    "Layout",
    "TableScope",
    "WeightFormat",
    "decode",
    "decode_integers",
    "encode",
    "layout",
    "weight_format",
]
