"""The suite. What several test modules need is imported as `tests.FOLDER.MODULE`."""
