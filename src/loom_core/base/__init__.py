"""What every layer stands on: element types, source locations, diagnostics and knobs."""
