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
