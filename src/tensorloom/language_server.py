"""`tlc lsp`: diagnostics, hover, definitions, completion and layout for editors, over stdin and stdout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from loom_core import __version__
from loom_core.base.diagnostics import Diagnostic
from loom_core.base.location import Location
from tensorloom.diagnostics import TensorLoomError
from tensorloom.editing import Document, open_document
from tensorloom.formatting import format_source
from tensorloom.source import Source, Span

_SEVERITY: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_KINDS: Final = {
    "keyword": types.CompletionItemKind.Keyword,
    "layer": types.CompletionItemKind.Field,
    "config": types.CompletionItemKind.Property,
    "variable": types.CompletionItemKind.Variable,
    "model": types.CompletionItemKind.Class,
    "function": types.CompletionItemKind.Function,
    "option": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "event": types.CompletionItemKind.Event,
}


# ---- positions: the protocol counts UTF-16 units, the compiler characters --------------------------------------------


def offset_of(source: Source, position: types.Position) -> int:
    """The character at a position of the protocol."""
    lines = source.text.split("\n")
    if position.line >= len(lines):
        return len(source.text)
    line = lines[position.line]
    units = line.encode("utf-16-le")[: 2 * position.character]
    return sum(len(before) + 1 for before in lines[: position.line]) + len(units.decode("utf-16-le", "ignore"))


def range_of(source: Source, span: Span) -> types.Range:
    return types.Range(_position(source, span[0]), _position(source, span[1]))


def _position(source: Source, offset: int) -> types.Position:
    line = source.line(offset)
    start = offset - source.column(offset) + 1
    return types.Position(line - 1, _units(source.text[start:offset]))


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _range_of_location(source: Source, location: Location) -> types.Range:
    lines = source.text.split("\n")
    row = min(max(location.line - 1, 0), len(lines) - 1)
    line = lines[row].encode()
    first = _units(line[: max(location.column, 0)].decode(errors="ignore"))
    last = _units(line[: max(location.end_column, location.column + 1, 0)].decode(errors="ignore"))
    return types.Range(types.Position(row, first), types.Position(row, max(last, first + 1)))


# ---- the server ------------------------------------------------------------------------------------------------------


class Server(LanguageServer):
    """`documents`: by URI, the last version of each open file that could be read."""

    def __init__(self) -> None:
        super().__init__("tensorloom", __version__)
        self.documents: dict[str, Document] = {}

    def overlay(self) -> dict[str, str]:
        """The texts of all open files, by real path."""
        texts = {}
        for uri, document in self.workspace.text_documents.items():
            path = to_fs_path(uri)
            if path is not None:
                texts[os.path.realpath(path)] = document.source
        return texts

    def check(self, uri: str) -> None:
        """Check an open file and publish what is found, for each file that it is found in."""
        path = to_fs_path(uri)
        if path is None:
            return
        try:
            document = open_document(Path(path), self.overlay())
        except TensorLoomError as error:
            self.publish(uri, Source("", path), error.diagnostics)
            return
        self.documents[uri] = document
        for unit in document.checked.units:
            own = [d for d in document.checked.diagnostics if d.location.file == unit.source.file]
            target = uri if unit is document.checked.unit else from_fs_path(os.path.abspath(unit.source.file))
            if target is not None:
                self.publish(target, unit.source, own)

    def publish(self, uri: str, source: Source, found: list[Diagnostic] | tuple[Diagnostic, ...]) -> None:
        items = [
            types.Diagnostic(
                range=_range_of_location(source, diagnostic.location),
                message=diagnostic.message + (f"\n{diagnostic.hint}" if diagnostic.hint else ""),
                severity=_SEVERITY[diagnostic.severity],
                code=diagnostic.code,
                source="tensorloom",
            )
            for diagnostic in found
        ]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=items))


def make_server() -> Server:
    """A server with all that it can do."""
    server = Server()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        # Open files may import this one.
        for uri in list(server.workspace.text_documents):
            server.check(uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        text = document.hover(offset_of(document.source, params.position))
        if not text:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, f"```\n{text}\n```"))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        document = server.documents.get(params.text_document.uri)
        place = document.definition(offset_of(document.source, params.position)) if document is not None else None
        if document is None or place is None:
            return None
        uri = from_fs_path(os.path.abspath(place.source.file))
        same = place.source is document.source
        return types.Location(params.text_document.uri if same else uri or "", range_of(place.source, place.span))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        found = document.completions(offset_of(document.source, params.position))
        return [types.CompletionItem(label=name, kind=_KINDS[kind]) for name, kind in found]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        text = server.workspace.get_text_document(params.text_document.uri).source
        source = Source(text, params.text_document.uri)
        try:
            formatted = format_source(source)
        except TensorLoomError:
            return []
        return [types.TextEdit(range_of(source, Span(0, len(source.text))), formatted)]

    return server


def serve() -> None:
    """Answer an editor until it leaves."""
    make_server().start_io()
