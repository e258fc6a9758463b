#include "interpreter/loaded_kernel.h"

#include <kgrpo/sdk/error.h>

#include <string>
#include <utility>

#include "interpreter/tensors.h"

namespace kgrpo::interpreter {

using evaluator::Argument;
using evaluator::CompiledKernel;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Parameter;
using evaluator::Problem;

std::shared_ptr<const simt::Module> ParsePtx(const Problem& problem, const CompiledKernel& kernel, Trouble* trouble) {
  if (kernel.ptx.empty()) {
    *trouble = {"no_launch", "The source defines no kernel."};
    return nullptr;
  }
  try {
    std::shared_ptr<const simt::Module> module = simt::Module::Parse(kernel.ptx);
    *trouble = evaluator::CheckVariables(module->GlobalBytes(), problem.allow_device_malloc);
    return *trouble ? nullptr : module;
  } catch (const Error& error) {
    *trouble = {"unsupported", std::string("The simulated device cannot run it: ") + error.what()};
    return nullptr;
  }
}

LoadedKernel::LoadedKernel(const Problem& problem, CompiledKernel compiled, std::shared_ptr<const simt::Module> module,
                           const Interpreter& interpreter)
    : kernel(std::move(compiled)),
      workers(interpreter.workers),
      session(std::move(module), kernel.usage, kernel.source, interpreter.device,
              {.warp_instructions = interpreter.warp_instructions,
               .device_malloc = problem.allow_device_malloc,
               .host_seconds = interpreter.host_seconds,
               .cancelled = interpreter.cancelled}) {}

Trouble LoadedKernel::Start() {
  worker = workers.TakeAndReplace();
  return session.Load(*worker, kernel.object);
}

std::vector<Expected> ReferenceOutputs(const Problem& problem, const CompiledKernel& reference,
                                       const Interpreter& interpreter, CorrectnessCase one,
                                       const std::vector<Argument>& arguments) {
  one.aliased = false;  // without aliasing the expected values are the same and the reference runs safely
  const auto require = [&](const Trouble& trouble) {
    if (trouble)
      throw Error(KGRPO_ERROR_INVALID, problem.directory + "/reference.cu: " + trouble.code + ": " + trouble.sentence);
  };
  Trouble trouble;
  const std::shared_ptr<const simt::Module> module = ParsePtx(problem, reference, &trouble);
  require(trouble);
  LoadedKernel loaded(problem, reference, module, interpreter);
  require(loaded.Start());
  const Tensors tensors(loaded.session.memory(), problem, one, arguments);
  CallRecord record;
  require(loaded.session.Call(*loaded.worker, tensors.values(), simt::Mode::kPlain, {}, &record));
  std::vector<Expected> expected(problem.parameters.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (parameter.IsWritten()) expected[i] = evaluator::ExpectedFrom(parameter, tensors.Read(i));
  }
  return expected;
}

}  // namespace kgrpo::interpreter
