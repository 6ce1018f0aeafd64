class FinishedRequests:
    """Each request's buffer stays in a list that nobody reads."""
    cause = "leak"
    also = ["state-retention"]
    blame = ["read_body", "finish"]
    carriers = HOST + DEVICE
    finished = store()

    def read_body(i):
        return make(B // 400)

    def finish(x):
        keep(finished, x)

    def handle(i):
        x = read_body(i)
        y = make(B // 90)
        drop(y)
        finish(x)
