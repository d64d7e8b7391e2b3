"""Diagnostics of TensorLoom.

T0: files and characters, T1: syntax, T2: names, T3: types and shapes, T4: training, T5: kernels, T6: use of `tlc`.
"""

from __future__ import annotations

from loom_core.base.diagnostics import UserError


class TensorLoomError(UserError):
    """Something is wrong with a TensorLoom program or with how `tlc` is used."""


# ---- files and characters --------------------------------------------------------------------------------------------


class NoSuchFile(TensorLoomError):
    code = "LOOM-T001"
    template = "the file cannot be read: {reason}"


class OtherSuffix(TensorLoomError):
    code = "LOOM-T002"
    template = "a TensorLoom file ends in .tl or .nml; this one has {suffix}"


class NotUtf8(TensorLoomError):
    code = "LOOM-T003"
    template = "the text is not UTF-8: byte {byte} starts no character"
    hint = "save the file as UTF-8"


class BadCharacter(TensorLoomError):
    code = "LOOM-T010"
    template = "{character} has no meaning here"


class BadNumber(TensorLoomError):
    code = "LOOM-T011"
    template = "{text} is not a number"
    hint = "numbers are written 12, 1.5, .5 or 1e-3"


class OpenString(TensorLoomError):
    code = "LOOM-T012"
    template = "the string is not closed on its line"
    hint = 'end it with "; a line break inside a string is written \\n'


class BadEscape(TensorLoomError):
    code = "LOOM-T013"
    template = "the string does not end its escapes as Python wants: {reason}"
    hint = "write \\\\ for a backslash"


class OpenComment(TensorLoomError):
    code = "LOOM-T014"
    template = "the comment is not closed"
    hint = "end it with */"


class BadIndentation(TensorLoomError):
    code = "LOOM-T015"
    template = "this line is indented by {width} columns, which no open block is"
    hint = "the open blocks are indented by {open}"


class BadFString(TensorLoomError):
    code = "LOOM-T016"
    template = "the f-string is malformed: {reason}"
    hint = "braces as text are written {{{{ and }}}}"


class Unmatched(TensorLoomError):
    code = "LOOM-T017"
    template = "{bracket} has no partner"


# ---- syntax ----------------------------------------------------------------------------------------------------------


class Unexpected(TensorLoomError):
    code = "LOOM-T101"
    template = "{found} where {expected} is needed"


class UnexpectedIndent(TensorLoomError):
    code = "LOOM-T102"
    template = "nothing opens a block before this indented line"
    hint = "a block follows a line that ends with a colon"


class EmptyBlock(TensorLoomError):
    code = "LOOM-T103"
    template = "{what} needs an indented block"
    hint = "write at least `pass` in it"


class TwoStatements(TensorLoomError):
    code = "LOOM-T104"
    template = "{found} starts a second statement on this line"
    hint = "one statement a line"


class ReservedName(TensorLoomError):
    code = "LOOM-T105"
    template = "{word} is a keyword, so it cannot name {what}"


class BadTarget(TensorLoomError):
    code = "LOOM-T106"
    template = "one cannot assign to {what}"
    hint = "assign to a name, an attribute or an element"


class TooDeep(TensorLoomError):
    code = "LOOM-T107"
    template = "the program is nested too deeply here"
    hint = "split it: give parts of it a name"


class Repeated(TensorLoomError):
    code = "LOOM-T108"
    template = "{what} is given twice"


class BadArguments(TensorLoomError):
    code = "LOOM-T109"
    template = "a positional argument follows one with a name"
    hint = "put the positional arguments first"


class Misplaced(TensorLoomError):
    code = "LOOM-T110"
    template = "{what} is only possible {where}"


class TooMany(TensorLoomError):
    code = "LOOM-T111"
    template = "too many errors; the rest is not shown"


# ---- names -----------------------------------------------------------------------------------------------------------


class UndefinedName(TensorLoomError):
    code = "LOOM-T201"
    template = "nothing is called {name}"


class UsedTooEarly(TensorLoomError):
    code = "LOOM-T202"
    template = "{name} is used before it is defined"
    hint = "move its definition up"


class Redefined(TensorLoomError):
    code = "LOOM-T203"
    template = "there is another {name} in line {line}"
    hint = "names of models, functions and kernels, and the names inside a model, must differ"


class ReservedMember(TensorLoomError):
    code = "LOOM-T204"
    template = "{name} would hide a part of nn.Module of the same name"
    hint = "give it another name"


class NoSuchMember(TensorLoomError):
    code = "LOOM-T205"
    template = "{owner} has no {name}"


class UnknownLayer(TensorLoomError):
    code = "LOOM-T206"
    template = "there is no layer {name}"


class UnknownModule(TensorLoomError):
    code = "LOOM-T207"
    template = "there is no module {name}"
    hint = "architectures are imported as `import path.name.nml`; the built-in modules are nn, data and data.mnist"


class ImportFails(TensorLoomError):
    code = "LOOM-T208"
    template = "{file} cannot be imported: {reason}"


class ImportCycle(TensorLoomError):
    code = "LOOM-T209"
    template = "these files import each other: {path}"
    hint = "move what both need to a third file"


class NoModel(TensorLoomError):
    code = "LOOM-T210"
    template = "{file} defines no model"


class NeverDeclared(TensorLoomError):
    code = "LOOM-T211"
    template = "{name} is assigned but was never declared"
    hint = "write `let {name} = ...`"
    severity = "warning"


class LocalType(TensorLoomError):
    code = "LOOM-T212"
    template = "{name} is known only as the value of dtype=, device= or precision="


# ---- types and shapes ------------------------------------------------------------------------------------------------


class WrongArguments(TensorLoomError):
    code = "LOOM-T301"
    template = "{callee}: {reason}"


class WrongShape(TensorLoomError):
    code = "LOOM-T302"
    template = "{what} needs {needed}, and gets {given}"


class CannotBroadcast(TensorLoomError):
    code = "LOOM-T303"
    template = "{left} and {right} cannot be combined: {reason}"
    hint = "sizes are aligned from the right and must be equal, or 1"


class BadMatmul(TensorLoomError):
    code = "LOOM-T304"
    template = "{left} @ {right}: {reason}"


class Ragged(TensorLoomError):
    code = "LOOM-T305"
    template = "the rows of this tensor have different lengths: {lengths}"


class WrongType(TensorLoomError):
    code = "LOOM-T306"
    template = "{what} needs {needed}, and gets {given}"


class AnnotationDiffers(TensorLoomError):
    code = "LOOM-T307"
    template = "{name} is declared as {declared}, but is {given}"


class EmptyResult(TensorLoomError):
    code = "LOOM-T308"
    template = "{what} leaves nothing of the input {given}"


class BadNumberValue(TensorLoomError):
    code = "LOOM-T309"
    template = "{what} must be {needed}, and is {given}"


class NotCallable(TensorLoomError):
    code = "LOOM-T310"
    template = "{what} cannot be called"


class NoForward(TensorLoomError):
    code = "LOOM-T311"
    template = "{model} has no forward, so it cannot be called"


class RecursiveModel(TensorLoomError):
    code = "LOOM-T312"
    template = "{model} contains itself"


class BadUnpack(TensorLoomError):
    code = "LOOM-T313"
    template = "{count} names for {given}"


# ---- training --------------------------------------------------------------------------------------------------------


class UnknownOption(TensorLoomError):
    code = "LOOM-T401"
    template = "train blocks have no option {name}"


class BadOption(TensorLoomError):
    code = "LOOM-T402"
    template = "{name} = {given}: {reason}"


class UnknownEvent(TensorLoomError):
    code = "LOOM-T403"
    template = "there is no event {name}"
    hint = "events are {events}"


class SoftmaxBeforeLoss(TensorLoomError):
    code = "LOOM-T404"
    template = "{model} ends with softmax, which {loss} applies by itself"
    hint = "return the values before softmax"
    severity = "warning"


class NotTrainable(TensorLoomError):
    code = "LOOM-T405"
    template = "{name} is no model, so it cannot be trained"
    hint = "make one first, as in `let net = MyModel()`"


class NoDataShape(TensorLoomError):
    code = "LOOM-T406"
    template = "the shape of synthetic data cannot be told: {reason}"
    hint = "annotate the input of forward, as in `x: Tensor[B, 3, 32, 32]`, or name a data set"


class UnknownDataset(TensorLoomError):
    code = "LOOM-T407"
    template = "there is no data set {name}"
    hint = "the data sets are {known}"


# ---- kernels ---------------------------------------------------------------------------------------------------------


class BadKernel(TensorLoomError):
    code = "LOOM-T501"
    template = "kernel {kernel}: {reason}"


# ---- use -------------------------------------------------------------------------------------------------------------


class NoSuchTarget(TensorLoomError):
    code = "LOOM-T601"
    template = "tlc cannot compile whole models for the target {target} yet"
    hint = "--target torch is the default; kernels run on Loom's simulator already"


class CannotWrite(TensorLoomError):
    code = "LOOM-T602"
    template = "the file cannot be written: {reason}"


class NeedsPackage(TensorLoomError):
    code = "LOOM-T603"
    template = "{command} needs the package {package}"
    hint = "install it with pip install 'loom-tile[{extra}]'"
