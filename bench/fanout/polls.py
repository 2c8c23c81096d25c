class Polls: pass
