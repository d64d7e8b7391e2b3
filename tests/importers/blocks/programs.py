"""Random functions of blocks as TTIR text, and a machine that jumps from one to the next: the oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

STEPS = 60
"""Blocks that a run passes before ways back are no longer taken."""
LIMIT = 400
"""Blocks after which a run is taken to be endless."""


@dataclass
class Way:
    target: int
    arguments: list[str]


@dataclass
class Code:
    """A block: its parameters, `name = left op right`, the name that it records, how it ends."""

    parameters: list[str]
    operations: list[tuple[str, str, str, str]] = field(default_factory=list)
    recorded: str = ""
    modulus: int = 2
    ways: list[Way] = field(default_factory=list)
    back: int = 0


def random_program(rng: random.Random, blocks: int, *, jumps_back: float) -> list[Code]:
    """Blocks whose branches go anywhere; the last one returns. Every block takes a counter and one or two numbers."""
    targets = []
    for number in range(blocks - 1):
        count = rng.choice((1, 2, 2, 2, 3))
        found = [
            rng.randrange(1, number + 1) if number and rng.random() < jumps_back else rng.randrange(number + 1, blocks)
            for _ in range(count)
        ]
        targets.append(found)
    targets.append([])
    dominators = _dominators(targets)
    code = [Code([f"%t{n}", f"%x{n}", *([f"%y{n}"] if rng.random() < 0.4 else [])]) for n in range(blocks)]
    names: list[list[str]] = []
    for number, block in enumerate(code):
        known = [name for other in sorted(dominators[number] - {number}) for name in names_of(code[other])]
        for i in range(rng.randrange(1, 4)):
            pool = known + block.parameters + [name for name, *_ in block.operations]
            operation = rng.choice(("addi", "subi", "muli", "xori"))
            block.operations.append((f"%v{number}_{i}", rng.choice(pool), operation, rng.choice(pool)))
        pool = known + names_of(block)
        names.append(names_of(block))
        block.recorded = rng.choice(pool)
        block.modulus = rng.choice((2, 3, 5))
        block.back = rng.randrange(STEPS)
        for target in targets[number]:
            arguments = [f"%n{number}", *(rng.choice(pool) for _ in code[target].parameters[1:])]
            block.ways.append(Way(target, arguments))
    return code


def names_of(block: Code) -> list[str]:
    return [*block.parameters[1:], *(name for name, *_ in block.operations)]


def _dominators(targets: list[list[int]]) -> list[set[int]]:
    """By the definition, as sets; blocks that are not reached are dominated by all."""
    everything = set(range(len(targets)))
    found = [{0}] + [set(everything) for _ in targets[1:]]
    changed = True
    while changed:
        changed = False
        for number in range(1, len(targets)):
            sources = [source for source, ways in enumerate(targets) if number in ways]
            common = set.intersection(everything, *(found[source] for source in sources)) | {number}
            if common != found[number]:
                found[number], changed = common, True
    return found


def reducible(code: list[Code]) -> bool:
    """By the transformations T1 and T2 on what is reached: no loops of one block, blocks with one source join it."""
    reached, pending = set(), [0]
    while pending:
        number = pending.pop()
        if number not in reached:
            reached.add(number)
            pending += [way.target for way in code[number].ways]
    graph = {number: {way.target for way in code[number].ways} - {number} for number in reached}
    changed = True
    while changed and len(graph) > 1:
        changed = False
        for number in list(graph):
            sources = [source for source, targets in graph.items() if number in targets]
            if number and len(sources) == 1:
                graph[sources[0]] |= graph.pop(number)
                graph[sources[0]] -= {number, sources[0]}
                changed = True
    return len(graph) == 1


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def run_program(code: list[Code], x: int) -> list[int] | None:
    """What is recorded, block by block, and the number returned at the end; None for a run that does not end."""
    values = dict.fromkeys(code[0].parameters, x) | {code[0].parameters[0]: 0}
    number, record = 0, []
    for _ in range(LIMIT):
        block = code[number]
        counter = values[block.parameters[0]]
        for name, left, operation, right in block.operations:
            a, b = values[left], values[right]
            values[name] = _wrapped({"addi": a + b, "subi": a - b, "muli": a * b, "xori": a ^ b}[operation])
        record.append(_wrapped(values[block.recorded] + number))
        if not block.ways:
            return record
        chosen = abs(values[block.recorded] % block.modulus) if counter < STEPS else block.modulus
        if len(block.ways) == 2:
            chosen = 0 if chosen == 0 else 1
        way = block.ways[min(chosen, len(block.ways) - 1)]
        values[f"%n{number}"] = counter + 1
        handed = [values[name] for name in way.arguments]
        number = way.target
        values.update(zip(code[number].parameters, handed, strict=True))
    return None


def text_of(code: list[Code]) -> str:
    """The program as a kernel of TTIR: records to `%out`, starts from `%x`."""
    lines = [
        "%zero = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        f"%limit = arith.constant {STEPS} : i32",
    ]
    first = ", ".join(["%zero", *["%x"] * (len(code[0].parameters) - 1)])
    types = ", ".join(["i32"] * len(code[0].parameters))
    lines.append(f"cf.br ^b0({first} : {types})")
    for number, block in enumerate(code):
        lines.append(f"^b{number}({', '.join(f'{name}: i32' for name in block.parameters)}):")
        counter = block.parameters[0]
        lines += [f"{name} = arith.{operation} {a}, {b} : i32" for name, a, operation, b in block.operations]
        lines += [
            f"%m{number} = arith.constant {number} : i32",
            f"%r{number} = arith.addi {block.recorded}, %m{number} : i32",
            f"%p{number} = tt.addptr %out, {counter} : !tt.ptr<i32>, i32",
            f"tt.store %p{number}, %r{number} : !tt.ptr<i32>",
            f"%n{number} = arith.addi {counter}, %one : i32",
        ]
        if not block.ways:
            lines.append("tt.return")
            continue
        goals = []
        for way in block.ways:
            goals.append(f"^b{way.target}({', '.join(way.arguments)} : {', '.join(['i32'] * len(way.arguments))})")
        if len(goals) == 1:
            lines.append(f"cf.br {goals[0]}")
            continue
        lines += [
            f"%k{number} = arith.constant {block.modulus} : i32",
            f"%q{number} = arith.remsi {block.recorded}, %k{number} : i32",
            f"%g{number} = arith.addi %q{number}, %k{number} : i32",
            f"%h{number} = arith.remsi %g{number}, %k{number} : i32",
            f"%e{number} = arith.cmpi slt, {counter}, %limit : i32",
            f"%s{number} = arith.select %e{number}, %h{number}, %k{number} : i32",
        ]
        if len(goals) == 2:
            lines += [
                f"%z{number} = arith.cmpi eq, %s{number}, %zero : i32",
                f"cf.cond_br %z{number}, {goals[0]}, {goals[1]}",
            ]
        else:
            cases = ", ".join(f"{case}: {goal}" for case, goal in enumerate(goals[:-1]))
            lines.append(f"cf.switch %s{number} : i32, [default: {goals[-1]}, {cases}]")
    body = "\n".join(lines)
    return f"module {{\ntt.func public @kernel(%out: !tt.ptr<i32>, %x: i32) {{\n{body}\n}}\n}}\n"
