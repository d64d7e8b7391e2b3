"""The text form: tokens, parser, printer."""
