#include "interpreter/loaded_kernel.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cuda_source/conditionals.h"
#include "cuda_source/lexer.h"
#include "cuda_source/own_headers.h"
#include "interpreter/launch_table.h"

namespace kgrpo::interpreter {

using evaluator::Argument;
using evaluator::CompiledKernel;
using evaluator::CorrectnessCase;
using evaluator::Expected;
using evaluator::Parameter;
using evaluator::Problem;

namespace {

// Returns a sentence about the first `__managed__` variable, with its line in the source, or "".
std::string ManagedVariable(const CompiledKernel& kernel) {
  if (kernel.ptx.find(".attribute(.managed)") == std::string::npos) return "";
  const std::string active = cuda_source::WithoutInactive(kernel.source).text;
  const std::string what = "`__managed__` variables are not supported by the GPU interpreter";
  for (const cuda_source::Token& token : cuda_source::Lex(active).tokens) {
    if (!token.Is("__managed__")) continue;
    const auto line = std::count(active.begin(), active.begin() + static_cast<std::ptrdiff_t>(token.begin), '\n');
    const cuda_source::SourcePlace place =
        cuda_source::PlacesOfLines(kernel.source, "kernel.cu")[static_cast<size_t>(line)];
    return place.file + ":" + std::to_string(place.line) + ": " + what;
  }
  return what;
}

}  // namespace

std::shared_ptr<const simt::Module> ParsePtx(const Problem& problem, const CompiledKernel& kernel, Trouble* trouble) {
  if (kernel.ptx.empty()) {
    *trouble = {"no_launch", "The source defines no kernel."};
    return nullptr;
  }
  try {
    std::shared_ptr<const simt::Module> module =
        simt::Module::Parse(kernel.ptx, evaluator::IsPtx(kernel.source) ? evaluator::OwnFileName(kernel.source) : "");
    *trouble = evaluator::CheckVariables(module->GlobalBytes(), problem.allow_device_malloc);
    return *trouble ? nullptr : module;
  } catch (const Error& error) {
    const std::string managed = ManagedVariable(kernel);
    *trouble = {"unsupported",
                "The simulated device cannot run it: " + (managed.empty() ? std::string(error.what()) : managed)};
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

Trouble LoadedKernel::Call(const Tensors& tensors, simt::Mode mode, const BlockChoice& choice, CallRecord* record) {
  if (worker) return session.Call(*worker, tensors.values(), mode, choice, record);
  std::vector<std::vector<uint8_t>> launches;
  if (Trouble trouble = MakeLaunches(kernel.source, session.module(), tensors, &launches)) return trouble;
  return session.Play(launches, mode, choice, record);
}

Trouble LoadedKernel::Start() {
  if (evaluator::IsPtx(kernel.source)) {
    session.Reset();
    return {};
  }
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
  require(loaded.Call(tensors, simt::Mode::kPlain, {}, &record));
  std::vector<Expected> expected(problem.parameters.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    if (parameter.IsWritten()) expected[i] = evaluator::ExpectedFrom(parameter, tensors.Read(i));
  }
  return expected;
}

}  // namespace kgrpo::interpreter
