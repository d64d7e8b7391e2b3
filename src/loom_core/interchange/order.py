"""The order of blocks: which come before which, and which dominate which."""

from __future__ import annotations

from loom_core.interchange.model import Block, Region


def successors_of(block: Block) -> list[Block]:
    """Blocks that control may go to from `block`."""
    return block.ops[-1].successors if block.ops else []


def reverse_postorder(region: Region) -> list[Block]:
    """The blocks that the entry reaches, each before those it alone leads to."""
    if not region.blocks:
        return []
    entry = region.blocks[0]
    seen = {id(entry)}
    order: list[Block] = []
    stack = [(entry, iter(successors_of(entry)))]
    while stack:
        block, left = stack[-1]
        following = next(left, None)
        if following is None:
            order.append(block)
            stack.pop()
        elif id(following) not in seen:
            seen.add(id(following))
            stack.append((following, iter(successors_of(following))))
    return order[::-1]


def dominators(region: Region) -> dict[int, set[int]]:
    """id of each reachable block -> ids of the blocks on every path from the entry to it, itself among them."""
    order = reverse_postorder(region)
    if not order:
        return {}
    before: dict[int, list[int]] = {id(block): [] for block in order}
    for block in order:
        for following in successors_of(block):
            before[id(following)].append(id(block))
    entry = id(order[0])
    every = {id(block) for block in order}
    found = {id(block): set(every) for block in order}
    found[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            sets = [found[above] for above in before[id(block)]]
            new = set.intersection(*sets) | {id(block)} if sets else {id(block)}
            if new != found[id(block)]:
                found[id(block)] = new
                changed = True
    return found


def printing_order(region: Region) -> list[Block]:
    """Blocks as stored, or in dominance order where a value would else be used before its definition in the text."""
    if len(region.blocks) < 2 or not _used_early(region):
        return region.blocks
    order = reverse_postorder(region)
    reached = {id(block) for block in order}
    return order + [block for block in region.blocks if id(block) not in reached]


def _used_early(region: Region) -> bool:
    defined_here = {value for block in region.blocks for value in block.arg_ids}
    defined_here.update(value for block in region.blocks for op in block.ops for value in op.results)
    seen: set[int] = set()
    for block in region.blocks:
        seen.update(block.arg_ids)
        for op in block.ops:
            if any(value in defined_here and value not in seen for value in _deep_operands(op)):
                return True
            seen.update(op.results)
    return False


def _deep_operands(op: object) -> list[int]:
    found: list[int] = []
    stack = [op]
    while stack:
        at = stack.pop()
        found += at.operands  # type: ignore[attr-defined]
        stack += [inner for region in at.regions for block in region.blocks for inner in block.ops]  # type: ignore[attr-defined]
    return found
