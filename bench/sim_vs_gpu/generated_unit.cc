#include "sim_vs_gpu/generated_unit.h"

#include <kgrpo/sdk/error.h>

#include <cstring>
#include <fstream>
#include <memory>

#include "simt/generated/kernel_generator.h"
#include "simt/simt.h"

namespace kgrpo::bench {
namespace {

using generated::GeneratedKernel;

void WriteBytes(std::ofstream& file, const void* data, uint64_t bytes) {
  file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
}
std::string ReadBytes(std::ifstream& file) {
  uint64_t bytes = 0;
  file.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
  std::string data(file ? bytes : 0, '\0');
  file.read(data.data(), static_cast<std::streamsize>(data.size()));
  return data;
}
std::vector<uint64_t> WordsOf(const std::string& bytes) {
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), words.size() * 8);
  return words;
}

void Interpret(const std::shared_ptr<const simt::Module>& module, const GeneratedKernel& kernel, simt::Mode mode,
               Interpreted& result) {
  simt::DeviceMemory memory;
  simt::ModuleInstance instance(module, memory);
  const std::vector<uint64_t> in = generated::InputsOf(kernel.number);
  result.out.assign(kernel.results.size() * kernel.Threads(), 0);
  result.scratch.assign(generated::kScratchWords, 0);
  const uint64_t addresses[3] = {memory.Allocate(in.size() * 8, "in", true),
                                 memory.Allocate(result.out.size() * 8, "out"),
                                 memory.Allocate(result.scratch.size() * 8, "scratch")};
  memory.Write(addresses[0], in.data(), in.size() * 8);
  memory.Write(addresses[2], result.scratch.data(), result.scratch.size() * 8);
  simt::LaunchConfig config;
  config.grid.x = kernel.blocks;
  config.block.x = kernel.threads;
  config.mode = mode;
  config.instruction_budget = 20'000'000;
  config.parameters.resize(sizeof addresses);
  std::memcpy(config.parameters.data(), addresses, sizeof addresses);
  const simt::LaunchResult launched = simt::Launch(instance, module->FindKernel(kernel.name), config);
  if (!launched.findings.empty()) {
    result.trouble =
        std::string("finding: ") + simt::FindingName(launched.findings[0].code) + ": " + launched.findings[0].message;
  } else if (launched.status != simt::LaunchStatus::kCompleted) {
    result.trouble = "unfinished: the kernel used up its instructions";
  }
  memory.Read(addresses[1], result.out.data(), result.out.size() * 8);
  memory.Read(addresses[2], result.scratch.data(), result.scratch.size() * 8);
}

void InterpretTwice(const std::shared_ptr<const simt::Module>& module, const GeneratedKernel& kernel,
                    Interpreted& result) {
  Interpreted plain;
  Interpret(module, kernel, simt::Mode::kChecked, result);
  if (!result.trouble.empty()) return;
  Interpret(module, kernel, simt::Mode::kPlain, plain);
  if (plain.out != result.out || plain.scratch != result.scratch || !plain.trouble.empty())
    result.trouble = "unstable: the results with and without checks differ " + plain.trouble;
}

std::string SourceOf(const std::vector<GeneratedKernel>& kernels) {
  std::string source = generated::DevicePrelude();
  for (const GeneratedKernel& kernel : kernels) source += kernel.source;
  return source;
}

// The module, or null and why not.
std::shared_ptr<const simt::Module> Parse(const std::string& ptx, std::string& trouble) {
  try {
    return simt::Module::Parse(ptx);
  } catch (const Error& error) {
    trouble = std::string("refused: ") + error.what();
    return nullptr;
  }
}

}  // namespace

void GeneratedUnit::Save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  WriteBytes(file, cubin.data(), cubin.size());
  const uint64_t count = kernels.size();
  WriteBytes(file, &count, sizeof count);
  for (const Interpreted& kernel : kernels) {
    WriteBytes(file, &kernel.number, sizeof kernel.number);
    WriteBytes(file, kernel.trouble.data(), kernel.trouble.size());
    WriteBytes(file, kernel.out.data(), kernel.out.size() * 8);
    WriteBytes(file, kernel.scratch.data(), kernel.scratch.size() * 8);
  }
  if (!file.flush()) throw Error(KGRPO_ERROR_UNAVAILABLE, path + " cannot be written: is the disk full?");
}

GeneratedUnit GeneratedUnit::Load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  GeneratedUnit unit;
  unit.cubin = ReadBytes(file);
  const std::vector<uint64_t> count = WordsOf(ReadBytes(file));
  for (uint64_t i = 0; i < (count.empty() ? 0 : count[0]); ++i) {
    Interpreted kernel;
    const std::vector<uint64_t> number = WordsOf(ReadBytes(file));
    if (number.empty()) break;
    kernel.number = number[0];
    kernel.trouble = ReadBytes(file);
    kernel.out = WordsOf(ReadBytes(file));
    kernel.scratch = WordsOf(ReadBytes(file));
    unit.kernels.push_back(std::move(kernel));
  }
  if (!file || count.empty()) throw Error(KGRPO_ERROR_UNAVAILABLE, path + " is not whole");
  return unit;
}

std::vector<std::string> OptionsOf(uint64_t unit) {
  std::vector<std::string> options = {"--gpu-architecture=sm_90", "--std=c++17", "--fmad=false", "--disable-warnings"};
  if (unit % 4 == 1) options.emplace_back("--ftz=true");
  return options;
}

std::string UnoptimisedCubin(const NvrtcCompiler& compiler, uint64_t number) {
  std::vector<std::string> options = OptionsOf(number / kUnitKernels);
  options.emplace_back("--ptxas-options=-O0");
  return compiler.Compile(SourceOf({generated::Generate(number)}), options).cubin;
}

GeneratedUnit MakeUnit(const NvrtcCompiler& compiler, uint64_t unit, uint64_t first, uint64_t end,
                       const std::function<void(uint64_t)>& starting) {
  std::vector<GeneratedKernel> kernels;
  for (uint64_t number = first; number < end; ++number) kernels.push_back(generated::Generate(number));
  GeneratedUnit made;
  const NvrtcCompiler::Compiled compiled = compiler.Compile(SourceOf(kernels), OptionsOf(unit));
  made.cubin = compiled.cubin;
  std::string trouble;
  const std::shared_ptr<const simt::Module> whole = Parse(compiled.ptx, trouble);
  for (const GeneratedKernel& kernel : kernels) {
    starting(kernel.number);
    Interpreted result;
    result.number = kernel.number;
    std::shared_ptr<const simt::Module> module = whole;
    // One refused kernel makes the module unusable: then each kernel is compiled on its own.
    if (module == nullptr) module = Parse(compiler.Compile(SourceOf({kernel}), OptionsOf(unit)).ptx, result.trouble);
    if (module != nullptr) InterpretTwice(module, kernel, result);
    made.kernels.push_back(std::move(result));
  }
  return made;
}

}  // namespace kgrpo::bench
