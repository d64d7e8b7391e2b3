"""Functions of several blocks, as other programs have them, made into loops and branches: one way for all importers."""

from loom_core.importers.blocks.check import JoinWitness, Structure
from loom_core.importers.blocks.counted import CountedWitness, LoopWitness
from loom_core.importers.blocks.emit import Program, build, stand_in
from loom_core.importers.blocks.graph import END, Compared, Edge, Graph, Node, Number, Sum, Unstructured

__all__ = [
    "END", "Compared", "CountedWitness", "Edge", "Graph", "JoinWitness", "LoopWitness", "Node", "Number", "Program",
    "Structure", "Sum", "Unstructured", "build", "stand_in",
]  # fmt: skip
