"""The rules, a module for each subject of the specification."""
