"""The campaign runner: starts variants, measures them, and reports what was measured."""
