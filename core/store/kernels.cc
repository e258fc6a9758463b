#include "store/kernels.h"

#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/evaluation_json.h>
#include <kgrpo/support/sha256.h>
#include "base/files.h"

namespace kgrpo {

void WriteBestKernel(const std::filesystem::path& directory, const BestKernel& kernel) {
  const std::filesystem::path folder = directory / kernel.problem;
  std::filesystem::create_directories(folder);
  nlohmann::ordered_json evidence = {{"problem", kernel.problem},
                                     {"speedup", kernel.speedup},
                                     {"source_sha256", Sha256(kernel.source)},
                                     {"step", kernel.step},
                                     {"trajectory", kernel.trajectory},
                                     {"round", kernel.round},
                                     {"suggestions", kernel.suggestions},
                                     {"evaluation", EvaluationToJson(kernel.evaluation)},
                                     {"baseline", EvaluationToJson(kernel.baseline)}};
  // evidence.json holds the source's hash: a reader can detect that the machine died between the two writes.
  WriteFileAtomically(folder / "best.cu", kernel.source);
  WriteFileAtomically(folder / "evidence.json", DumpJson(evidence, 2) + "\n");
}

}  // namespace kgrpo
