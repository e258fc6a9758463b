// How much of the gradients' reduction over ranks is hidden behind the backward pass: seconds of forward and backward
// without any, with one after the backward, and with one during it, round by round.
//   build/bin/reduction --device cuda --dtype bfloat16 --sequences 32      (starts both ranks here)
//   build/bin/reduction --size 2 --rank R --address HOST --port 29511 ...                   (one rank, on each machine)
#include <dlfcn.h>
#include <kgrpo/draft/collective.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ATen/ops/from_blob.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "common/figures.h"
#include "model_folder.h"
#include "policy_qwen/device.h"
#include "policy_qwen/model/random.h"
#include "policy_qwen/policy.h"
#include "policy_spans.h"
#include "trainer_shared/gradient_reduction.h"

namespace {

using kgrpo::policy::Copy;

struct Settings {
  std::string shape = "qwen2-0.5b", dtype = "bfloat16", device = "cpu", address = "127.0.0.1";
  int size = 2, rank = -1, port = 29511, threads = 1;
  size_t sequences = 16, prompt_tokens = 512, completion_tokens = 128, rounds = 7, bucket_mib = 25;
};

// The other ranks, by the plugin that a run uses.
class Ranks {
 public:
  explicit Ranks(const Settings& settings) {
    void* const library = ::dlopen(KGRPO_BINARY_DIR "/lib/kgrpo/transport_torch.so", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    const auto entry = reinterpret_cast<kgrpo_plugin_entry_function>(::dlsym(library, KGRPO_PLUGIN_ENTRY));
    api_ =
        static_cast<const kgrpo_transport_interface*>(entry()->get_interface(KGRPO_LITERAL(KGRPO_TRANSPORT_INTERFACE)));
    const std::string place = R"("rank": )" + std::to_string(settings.rank) + R"(, "local_rank": )" +
                              std::to_string(settings.rank) + R"(, "size": )" + std::to_string(settings.size) +
                              R"(, "local_size": )" + std::to_string(settings.size);
    const std::string options = "{" + place + R"(, "address": ")" + settings.address + R"(", "port": )" +
                                std::to_string(settings.port) +
                                R"(, "hosted": false, "run": "reduction", "patience": 60})";
    kgrpo::Check(api_->create(&host_, kgrpo::Str(options), &transport_));
    collective_ = api_->collective;
    host_ = {transport_, [](void*, kgrpo_str) -> const void* { return collective_; }};
  }
  ~Ranks() { api_->destroy(transport_); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  kgrpo::Collective collective() const { return kgrpo::Collective(&host_); }

 private:
  static inline const kgrpo_collective_interface* collective_ = nullptr;
  const kgrpo_transport_interface* api_ = nullptr;
  kgrpo_transport* transport_ = nullptr;
  kgrpo_host host_{};
};

enum Mode { kNone, kAfter, kDuring, kModes };

class Measurement {
 public:
  explicit Measurement(const Settings& settings)
      : settings_(settings),
        folder_(settings.shape),
        policy_(Options(), 1),
        ranks_(settings),
        set_(kgrpo::bench::SpansOf(policy_)),
        reduction_(set_, ranks_.collective(), kgrpo::policy::CurrentStream(policy_.device()),
                   settings.bucket_mib << 20) {
    const size_t tokens = settings.prompt_tokens + settings.completion_tokens;
    ids_.resize(settings.sequences);
    for (size_t i = 0; i < ids_.size(); ++i) {
      for (uint64_t j = 0; j < tokens; ++j)
        ids_[i].push_back(static_cast<int32_t>(3 + kgrpo::policy::RandomBits(i, j) % 700));
      const std::span<const int32_t> all = ids_[i];
      sequences_.push_back({all.first(settings.prompt_tokens), all.last(settings.completion_tokens)});
    }
    logprobs_.resize(ids_.size() * settings.completion_tokens);
    dlogprobs_.assign(logprobs_.size(), 1.0F / static_cast<float>(logprobs_.size()));
  }

  void Run() {
    std::array<std::vector<double>, kModes> seconds;
    for (size_t round = 0; round <= settings_.rounds; ++round) {
      for (size_t i = 0; i < kModes; ++i) {
        const Mode mode = static_cast<Mode>((round + i) % kModes);  // no mode always follows the same one
        const double took = ranks_.collective().MaxOf(Step(mode));
        if (round > 0) seconds[mode].push_back(took);  // the first warms up
      }
    }
    if (settings_.rank != 0) return;
    const auto median = [&](Mode mode) { return 1e3 * kgrpo::bench::Median(seconds[mode]); };
    const auto line = [&](const char* what, Mode mode) {
      std::printf("  %-28s %9.2f ms (least %.2f, most %.2f)\n", what, median(mode),
                  1e3 * kgrpo::bench::Quantile(seconds[mode], 0), 1e3 * kgrpo::bench::Quantile(seconds[mode], 1));
    };
    size_t bytes = 0;
    for (const auto& span : set_.spans) bytes += span.count * sizeof(float);
    std::printf("%s %s %s, %d ranks, %zu x (%zu + %zu) a rank, %.0f MB of gradients, buckets of %zu MiB\n",
                settings_.shape.c_str(), settings_.dtype.c_str(), settings_.device.c_str(), settings_.size,
                settings_.sequences, settings_.prompt_tokens, settings_.completion_tokens,
                static_cast<double>(bytes) / 1e6, settings_.bucket_mib);
    line("no reduction", kNone);
    line("after the backward", kAfter);
    line("during the backward", kDuring);
    std::printf("  reduction %.2f ms, of it hidden %.0f%%\n", median(kAfter) - median(kNone),
                100 * (median(kAfter) - median(kDuring)) / (median(kAfter) - median(kNone)));
  }

 private:
  kgrpo::policy::PolicyOptions Options() const {
    kgrpo::policy::PolicyOptions options;
    options.model = folder_.path();
    options.random_weights = true;
    options.bfloat16 = settings_.dtype == "bfloat16";
    options.device = settings_.device == "cuda" ? "cuda:" + std::to_string(settings_.rank) : settings_.device;
    options.threads = settings_.threads;
    return options;
  }

  static at::Tensor View(std::vector<float>& of) {
    return at::from_blob(of.data(), {static_cast<int64_t>(of.size())}, at::dtype(at::kFloat));
  }

  double Step(Mode mode) {
    ranks_.collective().MaxOf(0);  // all begin together
    const auto start = std::chrono::steady_clock::now();
    kgrpo::policy::ForwardContextPtr context =
        policy_.Forward(sequences_, Copy::kCurrent, 1.0, true, View(logprobs_), {});
    policy_.ZeroGradients();
    reduction_.Start();
    policy_.Backward(
        std::move(context), View(dlogprobs_),
        mode == kDuring ? [this](const at::Tensor& piece) { Tell(piece); } : kgrpo::policy::Policy::GradientsFinal());
    kgrpo::policy::WaitForDevice(policy_.device());  // as the plugin does before it gives the device up
    if (mode == kDuring) reduction_.Finish();
    if (mode == kAfter) {
      for (const auto& span : set_.spans) {
        const kgrpo::ArrayTensor gradient(span.gradient, span.count, KGRPO_DTYPE_FLOAT, 32,
                                          set_.on_cuda ? KGRPO_DEVICE_CUDA : KGRPO_DEVICE_CPU, set_.device);
        ranks_.collective().ReduceScatter(gradient);
      }
    }
    return kgrpo::bench::SecondsSince(start);
  }

  void Tell(const at::Tensor& piece) {
    const kgrpo::ArrayTensor view(piece.mutable_data_ptr(), static_cast<size_t>(piece.numel()), KGRPO_DTYPE_FLOAT, 32);
    reduction_.sink()->ready(reduction_.sink()->context, view.c());
  }

  const Settings settings_;
  kgrpo::bench::ModelFolder folder_;
  kgrpo::policy::Policy policy_;
  Ranks ranks_;
  kgrpo::trainer::ParameterSet set_;
  kgrpo::trainer::GradientReduction reduction_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<kgrpo::policy::ScoredSequence> sequences_;
  std::vector<float> logprobs_, dlogprobs_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("share of the gradients' reduction that the backward pass hides");
  Settings settings;
  app.add_option("--shape", settings.shape, "tiny, small-64, 135m, qwen2-0.5b or qwen2-1.5b")
      ->check(CLI::IsMember(kgrpo::bench::ModelShapes()));
  app.add_option("--dtype", settings.dtype, "float32 or bfloat16")->capture_default_str();
  app.add_option("--device", settings.device, "cpu, or cuda: a GPU for each rank")->capture_default_str();
  app.add_option("--sequences", settings.sequences, "a rank and step")->capture_default_str();
  app.add_option("--prompt-tokens", settings.prompt_tokens, "a sequence")->capture_default_str();
  app.add_option("--completion-tokens", settings.completion_tokens, "a sequence")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "timed steps of each kind")->capture_default_str();
  app.add_option("--threads", settings.threads, "CPU threads of a rank")->capture_default_str();
  app.add_option("--bucket-mib", settings.bucket_mib, "size of a bucket")->capture_default_str();
  app.add_option("--size", settings.size, "ranks")->capture_default_str();
  app.add_option("--rank", settings.rank, "this process's; without it, all are started here");
  app.add_option("--address", settings.address, "rank 0's")->capture_default_str();
  app.add_option("--port", settings.port, "rank 0's")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::vector<pid_t> others;
  if (settings.rank < 0) {
    settings.rank = 0;
    for (int rank = 1; rank < settings.size && settings.rank == 0; ++rank) {
      const pid_t child = ::fork();  // before libtorch has threads or a device
      if (child == 0) settings.rank = rank;
      if (child > 0) others.push_back(child);
    }
  }
  int code = 0;
  try {
    Measurement(settings).Run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reduction: rank %d: %s\n", settings.rank, error.what());
    code = 1;
  }
  if (settings.rank == 0) {
    for (const pid_t child : others) {
      int status = 0;
      ::waitpid(child, &status, 0);
      if (status != 0) code = 1;
    }
  }
  return code;
}
