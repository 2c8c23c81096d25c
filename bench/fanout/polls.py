class Polls:
    pass
