class GrowingHistory:
    """Each turn adds a message; the prompt is rendered from all of them and freed after the call."""
    cause = "prompt-growth"
    blame = ["render", "add"]
    carriers = BLOCKS + DEVICE
    structures = ALONE
    messages = store()

    def add(i):
        keep(messages, make(B // 3000 + length(i) * 8))

    def render(n):
        return make(n * 3)

    def handle(i):
        add(i)
        x = render(total(messages))
        drop(x)


class WeightsTooLarge:
    """Layers are read one after the other at start, and do not fit."""
    cause = "oversized-model"
    blame = ["read_layer", "load_model"]
    carriers = BLOCKS + DEVICE
    structures = SERVED
    factors = [0.5, 1]
    layers = store()

    def read_layer(k):
        return make(B // 32 + k % 3 * 4096)

    def load_model():
        for k in range(48):
            keep(layers, read_layer(k))

    def model_setup():
        load_model()

    def handle(i):
        x = make(B // 100)
        drop(x)
