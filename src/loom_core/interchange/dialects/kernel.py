"""kernel: functions over workitems, their launch configuration, identity, and what workitems do together."""

from typing import Any, Final

from loom_core.interchange.declaration import OpDeclaration, SymbolDefinition
from loom_core.interchange.dialects.enums import COMBINING, DIMENSION, LINKAGE, ORDERING, SCOPE
from loom_core.interchange.form import op
from loom_core.interchange.model import SymbolKind

_KERNEL: Final = frozenset(("func_like", "kernel"))
_HEAD: Final = "[[$retain ]][[target($target) ]]"
_EXPORTS: Final = "[[export($export_symbol) ]][[linkage($export_linkage) ]]"
_HEAD_ATTRIBUTES: Final = "retain?:retain target?:symbol callee:symbol predicates?:predicates"
_EXPORT_ATTRIBUTES: Final = f"export_symbol?:string export_linkage?:{LINKAGE}"
_COUNTS: Final = "workgroup_count_x:index workgroup_count_y:index workgroup_count_z:index"
_SIZES: Final = "workgroup_size_x:index workgroup_size_y:index workgroup_size_z:index"
_CLUSTER: Final = "workgroup_cluster_size_x?:index workgroup_cluster_size_y?:index workgroup_cluster_size_z?:index"
_CACHE: Final = "cache_scope:word cache_temporal:word"
_MOVE: Final = "%source to %dest{attrs} : T(source) to T(dest) -> T(token)"
_DIRECTION: Final = "direction:global_to_workgroup|workgroup_to_global"


def inside(name: str, form: str = "", **fields: Any) -> OpDeclaration:
    """An operation of kernel bodies."""
    return op(f"kernel.{name}", form, ancestors="kernel.def", **fields)


def dimensional(name: str, doc: str) -> OpDeclaration:
    return inside(
        name, "<$dimension> : T(result)", attributes=f"dimension:{DIMENSION}", results="result:index", traits="pure",
        builder_name=name.replace(".", "_"), doc=doc,
    )  # fmt: skip


def flat(name: str, doc: str) -> OpDeclaration:
    return inside(
        name, ": T(result)", results="result:index", traits="pure", builder_name=name.replace(".", "_"), doc=doc
    )


def together(name: str, form: str, **fields: Any) -> OpDeclaration:
    """An operation that workitems do together."""
    return inside(name, form, traits="convergent", **fields)


def moving(
    name: str, form: str = _MOVE, *, operands: str = "", attributes: str = _CACHE, doc: str = ""
) -> OpDeclaration:
    """An asynchronous copy between views."""
    return inside(
        f"async.{name}", form, operands=f"source:view dest:view {operands}", attributes=attributes,
        results="token:token", traits="read write",
        builder_name="copy" if name == "copy" else f"async_{name.replace('.', '_')}", doc=doc,
    )  # fmt: skip


OPS: Final = (
    op("kernel.def",
       f"{_HEAD}{_EXPORTS}$callee!args(config,config_args) R(config) launch!args(body)!where(predicates,body) R(body)",
       attributes=f"{_HEAD_ATTRIBUTES} {_EXPORT_ATTRIBUTES}",
       regions="config:kernel.launch.config body:kernel.return", blocks="body", traits="isolated",
       symbol=SymbolDefinition(SymbolKind.FUNC_DEF, "callee", _KERNEL), refers="target:target",
       doc="A kernel: how a launch is configured, and what each workitem does."),
    op("kernel.decl",
       f"{_HEAD}{_EXPORTS}$callee!args(config,workloads) launch!args(body)!where(predicates,body)",
       attributes=f"{_HEAD_ATTRIBUTES} {_EXPORT_ATTRIBUTES}", regions="config body", traits="isolated",
       symbol=SymbolDefinition(SymbolKind.FUNC_DECL, "callee", _KERNEL, True), refers="target:target",
       doc="A kernel that another module defines."),
    op("kernel.entry.decl", f"{_HEAD}$callee!args(body)!where(predicates,body)", attributes=_HEAD_ATTRIBUTES,
       regions="body", traits="isolated",
       symbol=SymbolDefinition(SymbolKind.FUNC_DECL, "callee", frozenset(("func_like", "entry")), True),
       refers="target:target", doc="An entry point that another module defines."),
    op("kernel.launch", "$kernel(%workloads*) launch(%args*) : (T(workloads*)) launch (T(args*))",
       operands="workloads*:any args*:any", attributes="kernel:symbol", traits="write observable",
       forbidden="kernel.def", refers="kernel:kernel", builder_name="launch", doc="Launch a kernel from the host."),
    op("kernel.dispatch", "$entry(%args*) : (T(args*))", operands="args*:any", attributes="entry:symbol",
       traits="write observable", forbidden="kernel.def", refers="entry:entry", doc="Dispatch an entry point."),
    op("kernel.launch.serial", "R(body)", regions="body!kernel.launch.yield", forbidden="kernel.def",
       builder_name="launch_serial", doc="Launches one after another."),
    op("kernel.launch.concurrent", "R(body)", regions="body!kernel.launch.yield", forbidden="kernel.def",
       builder_name="launch_concurrent", doc="Launches in any order."),
    op("kernel.launch.yield", traits="terminator", parents="kernel.launch.serial kernel.launch.concurrent",
       builder_name="launch_yield", doc="End a group of launches."),
    op("kernel.launch.config",
       "workgroups(%workgroup_count_x, %workgroup_count_y, %workgroup_count_z)"
       " workgroup_size(%workgroup_size_x, %workgroup_size_y, %workgroup_size_z)"
       "[[ cluster_size(%workgroup_cluster_size_x, %workgroup_cluster_size_y, %workgroup_cluster_size_z)]]"
       " : T(workgroup_count_x)",
       operands=f"{_COUNTS} {_SIZES} {_CLUSTER}", traits="terminator", parents="kernel.def", builder_name="config",
       doc="The grid and the workgroup of a launch."),
    op("kernel.return", traits="terminator convergent", ancestors="kernel.def", doc="End this workitem."),
    op("kernel.exit", "%condition : T(condition)[[ R(body)]]", operands="condition:i1",
       regions="body?!kernel.return", parents="kernel.def", traits="convergent",
       doc="End the workitems for which the condition holds, after the region where there is one."),
    inside("assert", "%condition[[ $message]] : T(condition)", operands="condition:i1", attributes="message?:string",
           traits="observable", doc="Fail where the condition does not hold."),
    inside("barrier", "<$memory_space> scope($scope) ordering($ordering)", older=("{attrs}", "<$memory_space>{attrs}"),
           attributes=f"memory_space:workgroup|global scope:{SCOPE} ordering:{ORDERING}",
           traits="read write convergent", doc="Wait for the other workitems, and see what they wrote."),
    moving("copy", attributes=f"{_CACHE} {_DIRECTION}", doc="Start a copy between views."),
    moving("copy.mask", "%source to %dest, %predicate{attrs} : T(source) to T(dest), T(predicate) -> T(token)",
           operands="predicate:i1", attributes=f"{_CACHE} {_DIRECTION}", doc="Start a copy where the predicate holds."),
    moving("gather", doc="Start a gathering copy."),
    moving("gather.mask", "%source to %dest, %predicate{attrs} : T(source) to T(dest), T(predicate) -> T(token)",
           operands="predicate:i1", doc="Start a gathering copy where the predicate holds."),
    moving("cluster.gather",
           "%source to %dest, %cluster_mask{attrs} : T(source) to T(dest), T(cluster_mask) -> T(token)",
           operands="cluster_mask:i32", doc="Start a copy to several workgroups of a cluster."),
    moving("cluster.gather.mask",
           "%source to %dest, %cluster_mask, %predicate{attrs}"
           " : T(source) to T(dest), T(cluster_mask), T(predicate) -> T(token)",
           operands="cluster_mask:i32 predicate:i1", doc="As `cluster.gather`, where the predicate holds."),
    moving("tensor.load.to.lds",
           "%source to %dest, %descriptor{attrs} : T(source) to T(dest), T(descriptor) -> T(token)",
           operands="descriptor:descriptor", doc="Start a copy that a tensor descriptor describes."),
    moving("tensor.store.from.lds",
           "%source to %dest, %descriptor{attrs} : T(source) to T(dest), T(descriptor) -> T(token)",
           operands="descriptor:descriptor", doc="Start a copy back that a tensor descriptor describes."),
    inside("async.group", "%tokens* : T(tokens*) -> T(group)", operands="tokens*:token", results="group:group",
           builder_name="group", doc="Commit copies to a group."),
    inside("async.wait", "%group{attrs} : T(group)", operands="group:group", attributes="newer_groups:i64",
           traits="read write", builder_name="wait", doc="Wait until at most so many newer groups are under way."),
    inside("tensor.lds.descriptor", "%dgroups* : T(dgroups*) -> T(descriptor)", operands="dgroups*:any",
           results="descriptor:descriptor", traits="pure", builder_name="descriptor",
           doc="A tensor descriptor from its words."),
    dimensional("workitem.id", "Position in the workgroup."),
    dimensional("workgroup.id", "Position of the workgroup in the grid."),
    dimensional("workgroup.size", "Workitems of a workgroup."),
    dimensional("workgroup.count", "Workgroups of the grid."),
    dimensional("workitem.dispatch.id", "Position among all workitems of the launch."),
    dimensional("cluster.id", "Position of the cluster in the grid."),
    dimensional("cluster.workgroup.id", "Position of the workgroup in its cluster."),
    dimensional("cluster.size", "Workgroups of a cluster."),
    dimensional("cluster.count", "Clusters of the grid."),
    flat("cluster.workgroup.flat_id", "Position of the workgroup in its cluster, as one number."),
    flat("subgroup.id", "Position of the subgroup in the workgroup."),
    flat("subgroup.count", "Subgroups of the workgroup."),
    flat("subgroup.size", "Workitems of a subgroup."),
    flat("subgroup.lane.id", "Position in the subgroup."),
    together("subgroup.shuffle", "<$mode> %value, %offset, %width : T(value), T(offset), T(width)",
             operands="value:any offset:i32 width:i32", attributes="mode:xor|up|down|index",
             results="result~value valid~i1", builder_name="shuffle",
             doc="The value of another lane, and whether there is such a lane."),
    together("subgroup.broadcast", "%value from %lane : T(value), T(lane)", operands="value:any lane:i32",
             results="result~value", builder_name="broadcast", doc="The value of one lane."),
    together("subgroup.broadcast.first", "%value : T(value)", operands="value:any", results="result~value",
             builder_name="first", doc="The value of the first active lane."),
    together("subgroup.reduce", "<$kind> %value{attrs} : T(value)", operands="value:any",
             attributes=f"kind:{COMBINING} cluster_size?:i64 cluster_stride?:i64", results="result~value",
             builder_name="subgroup_reduce", doc="All lanes combined, in every lane."),
    together("subgroup.scan", "<$kind> %value{attrs} : T(value)", operands="value:any",
             attributes=f"kind:{COMBINING} cluster_size?:i64 cluster_stride?:i64 mode:inclusive|exclusive "
             "direction:forward|reverse", results="result~value", builder_name="subgroup_scan",
             doc="The lanes up to this one combined."),
    together("subgroup.vote.any", "%predicate : T(predicate)", operands="predicate:i1", results="result:i1",
             builder_name="subgroup_vote_any", doc="Whether the predicate holds in some lane."),
    together("subgroup.vote.all", "%predicate : T(predicate)", operands="predicate:i1", results="result:i1",
             builder_name="subgroup_vote_all", doc="Whether the predicate holds in all lanes."),
    together("subgroup.vote.ballot", "%predicate : T(predicate) -> T(result)", operands="predicate:i1",
             results="result:integer", builder_name="ballot", doc="A bit for each lane."),
    together("subgroup.active.mask", ": T(result)", results="result:integer", builder_name="subgroup_active_mask",
             doc="A bit for each active lane."),
    together("subgroup.match.any", "%value : T(value) -> T(result)", operands="value:any", results="result:integer",
             builder_name="subgroup_match_any", doc="A bit for each lane with an equal value."),
    together("subgroup.match.all", "%value : T(value) -> T(result)", operands="value:any",
             results="result:integer equal~i1", builder_name="subgroup_match_all",
             doc="A bit for each lane if all have an equal value, and whether they have."),
    together("workgroup.reduce", "<$kind> %value : T(value)", operands="value:any", attributes=f"kind:{COMBINING}",
             results="result~value", builder_name="workgroup_reduce", doc="All workitems combined, in each."),
    together("workgroup.scan", "<$kind> %value{attrs} : T(value)", operands="value:any",
             attributes=f"kind:{COMBINING} mode:inclusive|exclusive direction:forward|reverse", results="result~value",
             builder_name="workgroup_scan", doc="The workitems up to this one combined."),
    together("workgroup.vote.any", "%predicate : T(predicate)", operands="predicate:i1", results="result:i1",
             builder_name="workgroup_vote_any", doc="Whether the predicate holds in some workitem."),
    together("workgroup.vote.all", "%predicate : T(predicate)", operands="predicate:i1", results="result:i1",
             builder_name="workgroup_vote_all", doc="Whether the predicate holds in all workitems."),
    together("workgroup.vote.count", "%predicate : T(predicate) -> T(result)", operands="predicate:i1",
             results="result:integer", builder_name="workgroup_vote_count", doc="In how many workitems it holds."),
)  # fmt: skip
