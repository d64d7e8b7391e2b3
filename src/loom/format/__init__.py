"""Forms in which modules are kept: text and bytecode."""
