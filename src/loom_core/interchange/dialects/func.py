"""func: functions and calls."""

from typing import Final

from loom_core.interchange.declaration import SymbolDefinition
from loom_core.interchange.form import op
from loom_core.interchange.model import SymbolKind

_CALLABLE: Final = frozenset(("func_like", "callable"))
_POLICY: Final = "purity?:pure temperature?:hot|cold inline_policy?:inline|noinline"
_POLICY_FORM: Final = "[[$purity ]][[$temperature ]][[$inline_policy ]]"
_HEAD: Final = "cc?:host|device|initializer|deinitializer target?:symbol callee:symbol predicates?:predicates"
_VISIBLE: Final = "visibility?:public retain?:retain"
_EXPORTS: Final = "abi?:word abi_attrs?:dict export_symbol?:string export_attrs?:dict"
_EXPORT_FORM: Final = (
    "[[target($target) ]]!clause(abi,abi,abi_attrs)!clause(export,export_symbol,export_attrs)$callee!args(body)"
    "[[ -> (T(results*))]]!where(predicates,body)"
)
_TEMPLATE: Final = f"implements:symbol {_VISIBLE} {_HEAD} {_POLICY} requires?:dict priority?:i64"
_TEMPLATE_FORM: Final = (
    f"implements($implements) [[$visibility ]][[$retain ]][[$cc ]]{_POLICY_FORM}[[target($target) ]]"
    "[[requires($requires) ]][[priority($priority) ]]$callee!args(body)[[ -> (T(results*))]]!where(predicates,body)"
)

OPS: Final = (
    op("func.def", f"[[$visibility ]][[$retain ]][[$cc ]]{_POLICY_FORM}{_EXPORT_FORM} R(body)",
       attributes=f"{_VISIBLE} {_HEAD} {_POLICY} {_EXPORTS}", results="results*:any", regions="body:func.return",
       blocks="body", traits="isolated", refers="target:target",
       symbol=SymbolDefinition(SymbolKind.FUNC_DEF, "callee", _CALLABLE), doc="A function."),
    op("func.decl",
       f"[[$visibility ]][[$retain ]]!clause(import,import_module,import_symbol)[[$cc ]]{_POLICY_FORM}{_EXPORT_FORM}",
       attributes=f"{_VISIBLE} import_module?:string import_symbol?:string {_HEAD} {_POLICY} {_EXPORTS}",
       results="results*:any", regions="body", traits="isolated", refers="target:target",
       symbol=SymbolDefinition(SymbolKind.FUNC_DECL, "callee", _CALLABLE, True), doc="A function defined elsewhere."),
    op("func.template", f"{_TEMPLATE_FORM} R(body)", attributes=_TEMPLATE, results="results*:any",
       regions="body:func.return", blocks="body", traits="isolated", refers="target:target",
       symbol=SymbolDefinition(SymbolKind.FUNC_TEMPLATE, "callee", _CALLABLE), doc="A body of a contract."),
    op("func.ukernel", _TEMPLATE_FORM, attributes=_TEMPLATE, results="results*:any", regions="body", traits="isolated",
       refers="target:target", symbol=SymbolDefinition(SymbolKind.FUNC_UKERNEL, "callee", _CALLABLE, True),
       doc="A foreign body that implements a contract."),
    op("func.provider.decl", "implements($implements) $callee!args(body)[[ -> (T(results*))]]!where(predicates,body)",
       attributes="implements:symbol callee:symbol predicates?:predicates", results="results*:any", regions="body",
       traits="isolated", symbol=SymbolDefinition(SymbolKind.FUNC_DECL, "callee", _CALLABLE, True),
       builder_name="provider_decl", doc="A provider of a contract that another module defines."),
    op("func.call", f"{_POLICY_FORM}$callee(%operands*) : (T(operands*)) -> (T(results*))", operands="operands*:any",
       attributes=f"callee:symbol {_POLICY}", results="results*:any", refers="callee:callable", doc="Call a function."),
    op("func.apply", "[[$purity ]][[$temperature ]]$contract(%operands*) : (T(operands*)) -> (T(results*))",
       operands="operands*:any", attributes="contract:symbol purity?:pure temperature?:hot|cold",
       results="results*:any", doc="Apply whatever implements a contract."),
    op("func.return", "[[ %operands* : T(operands*)]]", operands="operands*:any", traits="terminator",
       doc="End the function and hand over values."),
)  # fmt: skip
