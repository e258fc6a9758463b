# Where the host may name a plugin or a word of CUDA (host_words.cmake), each with its reason.
set(allowed
  # What is used where nobody names a plugin has to stand somewhere: here and nowhere else.
  "base/default_plugins.h evaluator_sim" "base/default_plugins.h observer_metrics" "base/default_plugins.h observer_tensorboard"
  "base/default_plugins.h policy_qwen" "base/default_plugins.h transport_torch"
  # kgrpo_host_interface.lock_device keeps other processes off a device, so the host must know a GPU whatever its number: by its UUID.
  "base/device_locks.cc cuda" "base/device_locks.h cuda" "base/device_locks.h gpu" "base/device_locks.cc gpu"
  "base/device_locks.h nvidia" "base/services.cc cuda"
  # `run --jobs` gives each run of an experiment a GPU of its own, before any plugin is loaded.
  "base/visible_gpus.cc gpu" "base/visible_gpus.cc nvidia" "base/visible_gpus.h cuda" "base/visible_gpus.h gpu" "base/visible_gpus.h nvidia"
  "cli/experiment.cc gpu" "cli/experiment.h gpu"
  # What kgrpo is for, in its help and its default prompt: kernels in CUDA C++.
  "cli/main.cc cuda" "config/pipeline_keys.cc cuda"
  # A kernel and its own headers are read by the library that reads sources for everybody.
  "../tools/eval/kernel_eval.cc cuda" "../tools/optimize/main.cc cuda"
  # A candidate's file may be PTX, which its name says: among a folder's files, and in a message of an evaluator.
  "../tools/eval/kernel_eval.cc ptx" "../tools/eval/kernel_text.cc ptx"
  # Examples in --help and in messages of kgrpo-eval and kgrpo-serve, to be copied.
  "../tools/eval/coder_check.cc evaluator_sim" "../tools/eval/kernel_eval.cc cuda" "../tools/eval/kernel_eval.cc evaluator_cuda"
  "../tools/serve/main.cc cuda" "../tools/serve/openapi.cc cuda" "../tools/serve/openapi.cc h100" "../tools/serve/requests.cc h100")
