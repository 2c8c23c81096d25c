"""What a front loses when something behind it breaks, or its own configuration is loaded again.

Not how fast: every request and every socket of a steady, light load is accounted for.
"""
