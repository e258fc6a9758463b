// The whole generation engine on the PTX interpreter: model, cache, graphs and scheduler. In float32 its tokens and
// log-probabilities are those of the CPU path; in both dtypes other requests do not change a request's bits.
#include "policy_qwen/generation/gpu_model.h"

#include <ATen/ops/from_blob.h>

#include <bit>

#include "gpu_elements.h"
#include "policy_qwen/generation/generation_engine.h"
#include "policy_qwen/model/random.h"
#include "test.h"

namespace kgrpo::policy {
namespace {

InterpretedGpu* g_gpu = nullptr;

constexpr int32_t kDevice = 1;

// gpu_runtime.h over the interpreter's memory.
const GpuRuntime kRuntime = {
    .struct_size = sizeof(GpuRuntime),
    .free_bytes = [](int32_t device, uint64_t* bytes) -> const char* {
      EXPECT_EQ(device, kDevice);
      *bytes = 3 << 20;
      return nullptr;
    },
    .allocate = [](int32_t device, uint64_t bytes, void** memory) -> const char* {
      EXPECT_EQ(device, kDevice);
      if (bytes > uint64_t{1} << 32) return "out of memory";
      *memory = reinterpret_cast<void*>(g_gpu->memory().Allocate(bytes, "engine"));
      return nullptr;
    },
    .release =
        [](int32_t device, void* memory) {
          EXPECT_EQ(device, kDevice);
          g_gpu->memory().Free(reinterpret_cast<simt::DeviceAddress>(memory));
        },
    .upload = [](void* to, const void* from, uint64_t bytes, GpuStream stream) -> const char* {
      EXPECT_EQ(stream.device, kDevice);
      g_gpu->memory().Write(reinterpret_cast<simt::DeviceAddress>(to), from, bytes);
      return nullptr;
    },
    .download = [](void* to, const void* from, uint64_t bytes, GpuStream stream) -> const char* {
      EXPECT_EQ(stream.device, kDevice);
      g_gpu->memory().Read(reinterpret_cast<simt::DeviceAddress>(from), to, bytes);
      return nullptr;
    },
    .wait = [](GpuStream) -> const char* { return nullptr; },
    .begin_graph = [](GpuStream) -> const char* {
      g_gpu->BeginGraph();
      return nullptr;
    },
    .end_graph = [](GpuStream, void** graph) -> const char* {
      *graph = new InterpretedGpu::Graph(g_gpu->EndGraph());
      return nullptr;
    },
    .launch_graph = [](void* graph, GpuStream stream) -> const char* {
      EXPECT_EQ(stream.device, kDevice);
      for (const auto& launch : *static_cast<InterpretedGpu::Graph*>(graph)) launch();
      return nullptr;
    },
    .destroy_graph = [](int32_t, void* graph) { delete static_cast<InterpretedGpu::Graph*>(graph); },
};

// PromptOps by plain loops on the host over the interpreter's memory, bfloat16. Checks what it is given.
class HostPromptOps final : public PromptOps {
 public:
  explicit HostPromptOps(const ModelConfig& config) : config_(config) {}
  ~HostPromptOps() override {
    if (attended_ != 0) g_gpu->memory().Free(attended_);
  }

  void Product(PromptProduct which, const void* x, const void* weight, const void* bias, int64_t rows,
               void* y) override {
    const int64_t hidden = config_.hidden_size, intermediate = config_.intermediate_size;
    const std::pair<int64_t, int64_t> shapes[] = {{hidden, config_.query_size() + 2 * config_.kv_size()},
                                                  {config_.query_size(), hidden},
                                                  {hidden, 2 * intermediate},
                                                  {intermediate, hidden}};
    const auto [inputs, outputs] = shapes[static_cast<size_t>(which)];
    const bool adds = which == PromptProduct::kOutput || which == PromptProduct::kDown;
    const auto in = Read(x, rows * inputs), w = Read(weight, outputs * inputs);
    const auto b = bias == nullptr ? std::vector<float>(static_cast<size_t>(outputs)) : Read(bias, outputs);
    auto out = adds ? Read(y, rows * outputs) : std::vector<float>(static_cast<size_t>(rows * outputs));
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t output = 0; output < outputs; ++output) {
        float sum = b[static_cast<size_t>(output)];
        for (int64_t i = 0; i < inputs; ++i) sum += At(in, row * inputs + i) * At(w, output * inputs + i);
        out[static_cast<size_t>(row * outputs + output)] += sum;
      }
    }
    if (which == PromptProduct::kQueryKeyValue) {
      g_gpu->memory().Write(reinterpret_cast<simt::DeviceAddress>(y), out.data(), out.size() * sizeof(float));
    } else {
      Write(y, out);
    }
  }

  void TakeRows(const void* x, int64_t rows, const int32_t* which, int64_t count, void* y) override {
    const int64_t hidden = config_.hidden_size;
    const auto in = Read(x, rows * hidden);
    std::vector<float> out;
    for (const int32_t row : Ints(which, count)) {
      EXPECT_LT(row, rows);
      out.insert(out.end(), in.begin() + row * hidden, in.begin() + (row + 1) * hidden);
    }
    Write(y, out);
  }

  const void* Attention(const PromptGroup& group, const void* query, const void* keys, const void* values) override {
    const int64_t size = config_.head_size, heads = config_.head_count, kv_heads = config_.kv_head_count;
    const auto q = Read(query, group.rows * heads * size), k = Read(keys, group.positions * kv_heads * size);
    const auto v = Read(values, group.positions * kv_heads * size);
    const auto row_ends = Ints(group.row_ends, group.sequences + 1),
               ends = Ints(group.position_ends, group.sequences + 1);
    EXPECT_EQ(row_ends.back(), group.rows);
    EXPECT_EQ(ends.back(), group.positions);
    std::vector<float> out(q.size());
    for (size_t s = 0; s + 1 < ends.size(); ++s) {
      const int64_t rows = row_ends[s + 1] - row_ends[s], positions = ends[s + 1] - ends[s];
      EXPECT_LE(rows, group.longest_rows);
      EXPECT_LE(positions, group.longest);
      for (int64_t item = 0; item < rows * heads; ++item) {
        const int64_t head = item % heads, seen = positions - rows + item / heads + 1;
        const int64_t q_at = (row_ends[s] + item / heads) * heads * size + head * size;
        const auto kv_at = [&](int64_t j) { return ((ends[s] + j) * kv_heads + head / (heads / kv_heads)) * size; };
        std::vector<float> weights;
        float total = 0;
        for (int64_t j = 0; j < seen; ++j) {
          float score = 0;
          for (int64_t d = 0; d < size; ++d) score += At(q, q_at + d) * At(k, kv_at(j) + d);
          weights.push_back(std::exp(score / std::sqrt(static_cast<float>(size))));
          total += weights.back();
        }
        for (int64_t d = 0; d < size; ++d) {
          float sum = 0;
          for (int64_t j = 0; j < seen; ++j) sum += weights[static_cast<size_t>(j)] * At(v, kv_at(j) + d);
          out[static_cast<size_t>(q_at + d)] = sum / total;
        }
      }
    }
    if (attended_ != 0) g_gpu->memory().Free(attended_);
    attended_ = g_gpu->memory().Allocate(out.size() * 2, "attended");
    Write(reinterpret_cast<void*>(attended_), out);
    return reinterpret_cast<void*>(attended_);
  }

 private:
  static float At(const std::vector<float>& values, int64_t index) { return values[static_cast<size_t>(index)]; }
  static std::vector<int32_t> Ints(const int32_t* at, int64_t count) {
    std::vector<int32_t> values(static_cast<size_t>(count));
    g_gpu->memory().Read(reinterpret_cast<simt::DeviceAddress>(at), values.data(), values.size() * sizeof(int32_t));
    return values;
  }
  static std::vector<float> Read(const void* from, int64_t count) {
    std::vector<uint16_t> halves(static_cast<size_t>(count));
    g_gpu->memory().Read(reinterpret_cast<simt::DeviceAddress>(from), halves.data(), halves.size() * 2);
    std::vector<float> values;
    for (const uint16_t half : halves) values.push_back(std::bit_cast<float>(uint32_t{half} << 16));
    return values;
  }
  static void Write(void* to, const std::vector<float>& values) {
    std::vector<uint16_t> halves;
    for (const float value : values) {
      halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(RoundTo(Element::kBfloat16, value)) >> 16));
    }
    g_gpu->memory().Write(reinterpret_cast<simt::DeviceAddress>(to), halves.data(), halves.size() * 2);
  }

  const ModelConfig& config_;
  simt::DeviceAddress attended_ = 0;
};

ModelConfig SmallModel(Architecture architecture, int64_t head_size) {
  ModelConfig config;
  config.architecture = architecture;
  config.vocabulary_size = 301;
  config.hidden_size = 72;
  config.intermediate_size = 88;
  config.layer_count = 2;
  config.head_count = 3;
  config.kv_head_count = 1;
  config.head_size = head_size;
  config.context_length = 200;
  config.initializer_range = 0.2;
  config.tied_head = architecture != Architecture::kLlama;
  config.query_key_norm = architecture == Architecture::kQwen3;
  config.attention_input_bias = architecture == Architecture::kQwen2;
  config.end_ids = {5, 77};
  if (architecture == Architecture::kQwen3) {
    config.rope.scaling = RopeScaling::kYarn;
    config.rope.factor = 4;
    config.rope.attention_factor = 1.14;
    config.rope.original_context_length = 50;
  }
  return config;
}

class GpuModelTest : public ::testing::Test {
 protected:
  void Make(const ModelConfig& config, Element type) {
    config_ = config;
    const at::ScalarType dtype = type == Element::kBfloat16 ? at::kBFloat16 : at::kFloat;
    parameters_ = ParameterSet(config_, dtype, at::kCPU);
    InitializeParameters(config_, 3, parameters_);
    for (size_t i = 0; i < parameters_.specs().size(); ++i) {
      // Norms and biases that are none would hide mistakes.
      const at::Tensor tensor = parameters_.Get(i);
      if (parameters_.specs()[i].is_matrix) continue;
      for (int64_t j = 0; j < tensor.numel(); ++j) {
        tensor[j] += 0.3 * RandomNormal(i, static_cast<uint64_t>(j));
      }
    }
    rotary_ = std::make_unique<RotaryTable>(config_, dtype, at::kCPU);
    g_gpu = &on_.gpu;
    std::vector<int64_t> positions(static_cast<size_t>(config_.context_length));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    weights_ = parameters_.weights();
    angles_ = rotary_->At(IndexTensor(positions, at::kCPU), config_.context_length);
    const auto move = [&](at::Tensor& tensor) {  // to the interpreter's memory: only its address is of use then
      const at::Tensor compact = tensor.contiguous();
      const auto address = on_.gpu.memory().Allocate(compact.nbytes(), "weight");
      on_.gpu.memory().Write(address, compact.const_data_ptr(), compact.nbytes());
      tensor = at::from_blob(reinterpret_cast<void*>(address), compact.sizes(), compact.options());
    };
    ForEachTensor(weights_, move);
    if (config_.tied_head) weights_.head = weights_.embedding;
    move(angles_.cos);
    move(angles_.sin);
    type_ = type;
  }
  void TearDown() override {
    EXPECT_EQ(on_.gpu.TakeFindings(), "");
    if (on_.gpu.launches() > 0) {
      EXPECT_EQ(on_.gpu.devices(), std::set<int>{kDevice});
    }
  }

  std::vector<Completion> Run(const std::vector<GenerationRequest>& requests, const SamplingOptions& options,
                              const SchedulerLimits& limits, bool prompt_ops = false) {
    GpuModel model(config_, type_, kStream, weights_, angles_, limits, on_.kernels, kRuntime,
                   prompt_ops ? std::make_unique<HostPromptOps>(config_) : nullptr);
    GenerationScheduler scheduler(model, limits);
    std::vector<Completion> completions(requests.size());
    scheduler.Run(requests, options,
                  [&](const Completion& completion) { completions[completion.request] = completion; });
    return completions;
  }

  std::vector<GenerationRequest> Requests(size_t count) {
    std::vector<GenerationRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<int32_t> prompt(1 + on_.random() % 40);
      for (int32_t& id : prompt) id = static_cast<int32_t>(on_.random() % 301);
      if (i == 1) prompt.resize(140, 9);  // two splits of attention
      if (i % 3 == 2) prompt = requests[i - 1].prompt;
      requests[i] = {prompt, i + 11};
    }
    return requests;
  }

  GenerationGpu on_;
  ModelConfig config_;
  ParameterSet parameters_;
  std::unique_ptr<RotaryTable> rotary_;
  Weights weights_;
  RotaryAngles angles_;
  Element type_ = Element::kFloat32;
};

TEST_F(GpuModelTest, GivesTheTokensOfTheCpuPath) {
  for (const auto& [architecture, head_size] :
       {std::pair{Architecture::kQwen2, 64}, {Architecture::kQwen3, 128}, {Architecture::kLlama, 64}}) {
    Make(SmallModel(architecture, head_size), Element::kFloat32);
    std::vector<GenerationRequest> requests = Requests(4);
    for (const SamplingOptions& options : {SamplingOptions{8, 0.0, 0, 1.0, 0.0}, SamplingOptions{8, 1.0, 0, 1.0, 0.0},
                                           SamplingOptions{8, 0.8, 20, 0.9, 0.01}}) {
      std::vector<Completion> expected(requests.size());
      GenerationEngine(config_, parameters_.weights(), *rotary_, at::kCPU, {})
          .scheduler()
          .Run(requests, options, [&](const Completion& completion) { expected[completion.request] = completion; });
      const auto found = Run(requests, options, {.slots = 3, .pages = 40, .context_length = 200, .rows_a_read = 50});
      for (size_t i = 0; i < requests.size(); ++i) {
        ASSERT_EQ(found[i].ids, expected[i].ids) << i;
        EXPECT_EQ(found[i].ended, expected[i].ended);
        for (size_t j = 0; j < found[i].ids.size(); ++j)
          ASSERT_NEAR(found[i].logprobs[j], expected[i].logprobs[j], 1e-4);
      }
      requests[1].prompt.resize(20);  // two splits of attention once: the interpreter takes its time
    }
  }
  EXPECT_GT(on_.gpu.overlapped(), 0U);
}

TEST_F(GpuModelTest, BitsAreTheRequestsOwn) {
  for (const Element type : {Element::kFloat32, Element::kBfloat16}) {
    Make(SmallModel(Architecture::kQwen2, 64), type);
    std::vector<GenerationRequest> requests = Requests(6);
    requests[1].prompt.resize(50);
    const SamplingOptions options = {4, 1.0, 0, 0.95, 0.0};
    // All at once, in chunks that end within prompts and shared pages, and one after the other.
    const auto together = Run(requests, options, {.slots = 6, .pages = 78, .context_length = 200, .rows_a_read = 100});
    const auto apart = Run(requests, options, {.slots = 1, .pages = 13, .context_length = 200, .rows_a_read = 9});
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(together[i].ids, apart[i].ids) << i;
      EXPECT_EQ(together[i].logprobs, apart[i].logprobs) << i;
    }
  }
}

// The failure of a launch ends the request with the kernel's name, also in a graph, and the next requests run.
TEST_F(GpuModelTest, RefusedLaunchIsAnErrorAndLeavesTheModelUsable) {
  Make(SmallModel(Architecture::kQwen2, 64), Element::kFloat32);
  const SchedulerLimits limits = {.slots = 2, .pages = 40, .context_length = 200, .rows_a_read = 50};
  const std::vector<GenerationRequest> requests = Requests(2);
  const std::vector<Completion> expected = Run(requests, {4, 0.0, 0, 1.0, 0.0}, limits);
  static GpuKernels broken;
  [[maybe_unused]] static bool fails = false;  // g++ does not see uses in a generic lambda
  broken = on_.kernels;
  [[maybe_unused]] static const auto good = broken.sample;
  [[maybe_unused]] static int samples = 0;
  broken.sample = [](auto... arguments) -> const char* {
    return fails && ++samples > 1 ? "sample: invalid configuration argument" : good(arguments...);  // in a graph
  };
  GpuModel model(config_, type_, kStream, weights_, angles_, limits, broken, kRuntime);
  GenerationScheduler scheduler(model, limits);
  std::vector<Completion> found(requests.size());
  const auto run = [&] {
    for (size_t i = 0; i < requests.size(); ++i) scheduler.Submit(i, requests[i], {4, 0.0, 0, 1.0, 0.0});
    while (!scheduler.idle()) {
      scheduler.Turn([&](const Completion& completion) { found[completion.request] = completion; });
    }
  };
  fails = true;
  EXPECT_EQ(test::MessageOf([&] { run(); }, KGRPO_ERROR_UNAVAILABLE),
            "generation on the GPU: sample: invalid configuration argument");
  fails = false;
  scheduler.Clear();
  run();
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << i;
}

// Prompts by other operators than decode steps: the log-probabilities stay close, and how prompts are cut into chunks
// and groups changes no bit, with pages shared or not.
TEST_F(GpuModelTest, PromptOpsGiveTheSameBitsInAnyChunks) {
  for (const auto& [architecture, head_size] :
       {std::pair{Architecture::kQwen2, 64}, {Architecture::kQwen3, 128}, {Architecture::kLlama, 64}}) {
    Make(SmallModel(architecture, head_size), Element::kBfloat16);
    const std::vector<GenerationRequest> requests = Requests(10);
    const SamplingOptions options = {4, 1.0, 0, 0.95, 0.0};
    const SchedulerLimits many = {.slots = 10, .pages = 130, .context_length = 200, .rows_a_read = 400};
    const auto whole = Run(requests, options, many, true);
    const auto ours = Run({requests[0], requests[2], requests[3]}, {1, 1.0, 0, 0.95, 0.0}, many);
    for (const SchedulerLimits& limits :
         {SchedulerLimits{
              .slots = 10, .pages = 130, .context_length = 200, .rows_a_read = 50},  // groups of 200 positions
          SchedulerLimits{.slots = 1, .pages = 13, .context_length = 200, .rows_a_read = 9}}) {
      const auto found = Run(requests, options, limits, true);
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(found[i].ids, whole[i].ids) << i;
        EXPECT_EQ(found[i].logprobs, whole[i].logprobs) << i;
      }
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      const Completion& with_ops = whole[i == 0 ? 0 : i + 1];
      if (with_ops.ids[0] == ours[i].ids[0]) {
        EXPECT_NEAR(with_ops.logprobs[0], ours[i].logprobs[0], 0.1) << i;
      }
    }
  }
}

TEST_F(GpuModelTest, TooLittleMemoryIsNamed) {
  Make(SmallModel(Architecture::kQwen2, 64), Element::kFloat32);
  try {
    const GpuModel model(config_, type_, kStream, weights_, angles_,
                         {.slots = 1, .pages = 1 << 30, .context_length = 200}, on_.kernels, kRuntime);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("for the cache's keys, and 3 MiB of the GPU's memory are free"),
              std::string::npos)
        << error.what();
  }
  config_.head_size = 96;
  EXPECT_THROW(GpuModel::CheckShape(config_), Error);
}

}  // namespace
}  // namespace kgrpo::policy
