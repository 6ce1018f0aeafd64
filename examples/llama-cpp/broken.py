"""llama.cpp's server, made for sixteen users with long prompts; three come, with short ones."""
import sys

import xllamacpp


def serve(model):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_parallel = 16
    params.n_ctx = 16 * 16384  # of all users together
    params.n_gpu_layers = 0
    params.fit_params = False  # asked for is what is wanted
    params.verbosity = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(params)


def main():
    server = serve(sys.argv[1])
    for question in ("Where is my parcel?", "May I send it back?", "Who pays for that?"):
        answer = server.handle_completions({"prompt": question, "max_tokens": 8})
        print("answered %d tokens" % answer["usage"]["completion_tokens"], flush=True)


main()
