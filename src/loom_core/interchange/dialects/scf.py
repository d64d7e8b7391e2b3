"""scf: structured control flow."""

from typing import Final

from loom_core.interchange.form import op

OPS: Final = (
    op("scf.for",
       "!induction(body,lower_bound) = [%lower_bound to %upper_bound step %step]!carried(iter_args,body,1)"
       "[[ -> (T(results*))]][[ unroll(%unroll_factor)]][[ $unroll_policy]][[ schedule($unroll_schedule)]] R(body)",
       operands="lower_bound:address upper_bound:address step:address iter_args*:any unroll_factor?:index",
       attributes="unroll_policy?:unroll unroll_schedule?:linear|interleaved|recurrence", results="results*:any",
       regions="body!scf.yield", same="lower_bound upper_bound step", traits="loop", doc="A counted loop."),
    op("scf.if", "%condition[[ -> (T(results*))]] R(then_region)[[ else R(else_region)]]", operands="condition:i1",
       results="results*:any", regions="then_region!scf.yield else_region?!scf.yield", doc="One of two regions."),
    op("scf.while", "!carried(iter_args,before)[[ -> (T(results*))]] R(before) do!do(after) R(after)",
       operands="iter_args*:any", results="results*:any", regions="before:scf.condition after:scf.yield",
       traits="loop", doc="A loop that asks before each iteration."),
    op("scf.condition", "%condition[[, %forwarded*]] : T(condition)[[, T(forwarded*)]]",
       operands="condition:i1 forwarded*:any", traits="terminator", parents="scf.while",
       doc="Whether the loop goes on, and what it hands over."),
    op("scf.switch", "%selector[[ -> (T(results*))]] !cases(case_keys,default_region,case_regions)",
       operands="selector:index", attributes="case_keys:i64s", results="results*:any",
       regions="default_region!scf.yield case_regions*!scf.yield", doc="The region of a key, or the default one."),
    op("scf.lookup", "%selector !rows(case_keys,values) : T(results*)", operands="selector:index values*:any",
       attributes="case_keys:i64s", results="results*:any", traits="pure", doc="The row of a key, or the default one."),
    op("scf.select", "%condition, %true_value, %false_value : T(result)",
       operands="condition:i1 true_value:any false_value:any", results="result:any",
       same="true_value false_value result", traits="pure", doc="One of two values."),
    op("scf.yield", "[[ %values* : T(values*)]]", operands="values*:any", traits="terminator",
       doc="End a region and hand over values."),
    op("scf.schedule.fence", traits="fence", builder_name="fence", doc="A hint that order matters here."),
)  # fmt: skip
