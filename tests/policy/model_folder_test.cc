// Broken model folders: each is refused with a message that names the file, the mistake and the expected content.
#include <c10/core/InferenceMode.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cstring>

#include "golden.h"
#include "policy_qwen/files.h"
#include "policy_qwen/model/safetensors.h"

namespace kgrpo::policy {
namespace {

using nlohmann::json;

// A copy of a golden model to break.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& model = "qwen2") {
    for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder(model))) {
      if (entry.is_regular_file()) std::filesystem::copy(entry.path(), folder_.path());
    }
  }

  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Read(const std::string& name) const { return ReadFile(Path(name)); }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(Path(name)); }

  void EditConfig(const std::function<void(json&)>& edit) const {
    json config = json::parse(Read("config.json"));
    edit(config);
    Write("config.json", config.dump());
  }

  // Rewrites the header of model.safetensors, leaving the data as it is.
  void EditHeader(const std::function<std::string(json)>& edit) const {
    const std::string content = Read("model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, content.data(), 8);
    const std::string header = edit(json::parse(content.substr(8, length)));
    length = header.size();
    Write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + header +
                                   content.substr(content.size() - DataSize()));
  }

  size_t DataSize() const {
    const std::string content = Read("model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, content.data(), 8);
    return content.size() - 8 - length;
  }

  // Writes the tensors again, after a change.
  void EditTensors(const std::function<void(std::vector<TensorToWrite>&)>& edit) const {
    const std::string copy = Read("model.safetensors");  // written over below, while it is mapped
    std::vector<TensorToWrite> tensors;
    const TensorFiles files(folder_.path());
    for (const auto& [name, tensor] : files.tensors())
      tensors.push_back({name, tensor.dtype, tensor.shape, tensor.data});
    edit(tensors);
    WriteTensorFile(Path("model.safetensors"), tensors);
  }

  // The message of loading the folder, its name replaced by DIR.
  std::string Message() const {
    PolicyOptions options;
    options.model = folder_.path();
    return MessageOf([&] { Policy policy(options, 0); });
  }

  std::string MessageOf(const std::function<void()>& body) const {
    try {
      body();
    } catch (const Error& error) {
      std::string text = error.what();
      for (size_t at; (at = text.find(folder_.path())) != std::string::npos;)
        text.replace(at, folder_.path().size(), "DIR");
      return text;
    }
    return "accepted";
  }

  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(ModelFolderTest, TheGoldenFoldersAreAccepted) {
  for (const std::string& model : GoldenModels()) EXPECT_EQ(ModelFolder(model).Message(), "accepted") << model;
}

// ---- files that are missing or cut

TEST(ModelFolderTest, NoWeights) {
  const ModelFolder folder;
  folder.Remove("model.safetensors");
  EXPECT_EQ(
      folder.Message(),
      "DIR: no weights: neither model.safetensors nor model.safetensors.index.json is there (\"init\": \"random\" "
      "needs none)");
  folder.Write("pytorch_model.bin", "");
  EXPECT_EQ(
      folder.Message(),
      "DIR: has pytorch_model.bin but no model.safetensors; save it again with transformers' save_pretrained, which "
      "writes safetensors");
}

TEST(ModelFolderTest, NoConfig) {
  const ModelFolder folder;
  folder.Remove("config.json");
  EXPECT_EQ(folder.Message(), "DIR/config.json: cannot open: No such file or directory");
  folder.Write("config.json", "{\"hidden_size\": 32");
  EXPECT_EQ(folder.Message(),
            "DIR/config.json: is not JSON: stopped at byte 19 of 18; the file looks cut short: copy it again");
  folder.Write("config.json", "");
  EXPECT_EQ(folder.Message(), "DIR/config.json: is empty; copy the file again");
  folder.Write("config.json", "{\"x\": " + std::string(200000, '['));
  EXPECT_EQ(folder.Message(), "DIR/config.json: is nested more than 200 deep");
}

TEST(ModelFolderTest, SizesThatNoMemoryHolds) {
  const ModelFolder folder;
  folder.EditConfig([](json& config) { config["hidden_size"] = config["num_attention_heads"].get<int64_t>() << 30; });
  EXPECT_THAT(folder.Message(), testing::StartsWith("DIR/config.json: \"hidden_size\" is "));
  EXPECT_THAT(folder.Message(), testing::HasSubstr(": the parameters alone would take "));
}

TEST(ModelFolderTest, UnknownArchitecture) {
  const ModelFolder folder;
  folder.EditConfig([](json& config) { config["architectures"] = {"Phi3ForCausalLM"}; });
  EXPECT_EQ(folder.Message(),
            "DIR/config.json: the architecture \"Phi3ForCausalLM\" is not supported; supported are Qwen2ForCausalLM "
            "(also Qwen2.5), Qwen3ForCausalLM, LlamaForCausalLM and MistralForCausalLM");
}

TEST(ModelFolderTest, NoTokenizer) {
  const ModelFolder folder;
  folder.Remove("tokenizer.json");
  EXPECT_EQ(folder.Message(),
            "DIR/tokenizer.json: no such file; a model folder needs the tokenizer.json that AutoTokenizer's "
            "save_pretrained writes");
  folder.Write("tokenizer.json", "{\"model\": {");
  EXPECT_EQ(folder.Message(),
            "DIR/tokenizer.json: is not JSON: stopped at byte 12 of 11; the file looks cut short: copy it again");
}

TEST(ModelFolderTest, NoFolder) {
  const ModelFolder folder;
  PolicyOptions options;
  options.model = folder.Path("nowhere");
  EXPECT_EQ(folder.MessageOf([&] { Policy policy(options, 0); }),
            "DIR/nowhere: no such folder; a model is a folder that holds config.json, tokenizer.json and weights in "
            "safetensors files");
  options.model = folder.Path("config.json");
  EXPECT_EQ(folder.MessageOf([&] { Policy policy(options, 0); }),
            "DIR/config.json: no such folder; a model is a folder that holds config.json, tokenizer.json and weights "
            "in safetensors files");
}

TEST(ModelFolderTest, TruncatedInTheData) {
  const ModelFolder folder;
  const std::string content = folder.Read("model.safetensors");
  folder.Write("model.safetensors", content.substr(0, content.size() - 100));
  EXPECT_EQ(folder.Message(),
            "DIR/model.safetensors: tensor \"model.norm.weight\": its data ends at byte 100992 of the data, but the "
            "file holds only 100892: the file is truncated; copy or download it again");
}

TEST(ModelFolderTest, TruncatedAnywhereIsRefused) {
  const ModelFolder folder;
  const std::string content = folder.Read("model.safetensors");
  for (size_t size = 0; size < content.size(); size += size < 64 ? 1 : 997) {
    folder.Write("model.safetensors", content.substr(0, size));
    EXPECT_NE(folder.Message(), "accepted") << size << " bytes";
  }
}

TEST(ModelFolderTest, TruncatedInTheHeader) {
  const ModelFolder folder;
  folder.Write("model.safetensors", folder.Read("model.safetensors").substr(0, 1000));
  EXPECT_THAT(folder.Message(),
              ::testing::MatchesRegex("DIR/model.safetensors: its header is [0-9]+ bytes long, but the "
                                      "file holds only 992 after the length: the file is truncated"));
  folder.Write("model.safetensors", "abc");
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors: holds 3 bytes: too short for a safetensors file");
  folder.Write("model.safetensors", "");
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors: holds 0 bytes: too short for a safetensors file");
}

TEST(ModelFolderTest, NotSafetensors) {
  const ModelFolder folder;
  folder.Write("model.safetensors", "<html><body>You need to log in to download this file</body></html>");
  EXPECT_THAT(folder.Message(), ::testing::MatchesRegex("DIR/model.safetensors: its header would be [0-9]+ bytes long: "
                                                        "not a safetensors file"));
  const uint64_t length = 16;
  folder.Write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + "[1, 2, 3, 4, 5] ");
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors: the header does not begin with '{': not a safetensors file");
  folder.Write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), 8) + "{\"a\": no json!!}");
  EXPECT_THAT(folder.Message(), ::testing::StartsWith("DIR/model.safetensors: the header is not valid JSON: "));
}

// ---- headers that lie

TEST(ModelFolderTest, OverlappingTensors) {
  const ModelFolder folder;
  folder.EditHeader([](json header) {
    header["model.norm.weight"]["data_offsets"] = header["model.layers.0.input_layernorm.weight"]["data_offsets"];
    return header.dump();
  });
  EXPECT_EQ(
      folder.Message(),
      "DIR/model.safetensors: tensors \"model.layers.0.input_layernorm.weight\" and \"model.norm.weight\" overlap");
}

TEST(ModelFolderTest, BytesThatNoTensorHas) {
  const ModelFolder folder;
  folder.EditHeader([](json header) {
    header.erase("model.norm.weight");
    return header.dump();
  });
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors: the last 128 bytes belong to no tensor");
  const ModelFolder other;
  other.EditHeader([](json header) {
    header.erase("model.layers.0.input_layernorm.weight");
    return header.dump();
  });
  EXPECT_THAT(other.Message(),
              ::testing::MatchesRegex("DIR/model.safetensors: bytes [0-9]+ to [0-9]+ of the data, before "
                                      "tensor \"[a-z0-9._]+\", belong to no tensor"));
}

TEST(ModelFolderTest, ATensorTwice) {
  const ModelFolder folder;
  folder.EditHeader([](json header) {
    std::string text = header.dump();
    const std::string entry = "\"model.norm.weight\":" + header["model.norm.weight"].dump() + ",";
    return text.insert(1, entry);
  });
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors: the header names tensor \"model.norm.weight\" twice");
}

TEST(ModelFolderTest, SizeAgainstShape) {
  const ModelFolder folder;
  folder.EditHeader([](json header) {
    header["model.norm.weight"]["shape"] = {31};
    return header.dump();
  });
  EXPECT_EQ(
      folder.Message(),
      "DIR/model.safetensors: tensor \"model.norm.weight\": shape [31] of F32 takes 124 bytes, but its data_offsets "
      "span 128");
}

TEST(ModelFolderTest, NonsenseEntries) {
  const auto message = [](const std::function<void(json&)>& edit) {
    const ModelFolder folder;
    folder.EditHeader([&](json header) {
      edit(header.at("model.norm.weight"));
      return header.dump();
    });
    return folder.Message();
  };
  const std::string where = "DIR/model.safetensors: tensor \"model.norm.weight\": ";
  EXPECT_EQ(message([](json& entry) { entry = 5; }), where + "no dtype");
  EXPECT_EQ(message([](json& entry) { entry["dtype"] = "F33"; }), where + "unknown dtype \"F33\"");
  EXPECT_EQ(message([](json& entry) { entry["shape"] = {-32}; }),
            where + "no shape, or a shape that is not a list of sizes");
  EXPECT_EQ(message([](json& entry) {
              entry["shape"] = {uint64_t{1} << 62, 32};
            }),
            where + "its shape [4611686018427387904,32] is too large to be true");
  EXPECT_EQ(message([](json& entry) { entry["data_offsets"] = {0}; }),
            where + "no data_offsets, or not a pair of positions");
  EXPECT_EQ(message([](json& entry) { entry["data_offsets"] = {128, 0}; }), where + "its data ends before it begins");
}

// ---- tensors that are not the architecture's

TEST(ModelFolderTest, MissingTensor) {
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    std::erase_if(tensors,
                  [](const TensorToWrite& tensor) { return tensor.name.find("k_proj.bias") != std::string::npos; });
  });
  EXPECT_EQ(folder.Message(),
            "DIR: the weights lack \"model.layers.0.self_attn.k_proj.bias\", \"model.layers.1.self_attn.k_proj.bias\", "
            "which Qwen2ForCausalLM with this config.json has");
}

TEST(ModelFolderTest, ManyMissingTensors) {
  const ModelFolder folder;
  folder.EditConfig([](json& config) {
    config["num_hidden_layers"] = 3;
    config["layer_types"] = {"full_attention", "full_attention", "full_attention"};
  });
  EXPECT_EQ(
      folder.Message(),
      "DIR: the weights lack \"model.layers.2.input_layernorm.weight\", \"model.layers.2.self_attn.q_proj.weight\", "
      "\"model.layers.2.self_attn.k_proj.weight\" and 9 more, which Qwen2ForCausalLM with this config.json has");
}

TEST(ModelFolderTest, ExtraTensor) {
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    tensors.push_back(tensors.back());
    tensors.back().name = "model.layers.7.mlp.up_proj.weight";
  });
  EXPECT_EQ(
      folder.Message(),
      "DIR: the weights hold \"model.layers.7.mlp.up_proj.weight\", which Qwen2ForCausalLM with this config.json does "
      "not have");
}

TEST(ModelFolderTest, ATiedHeadMayBeThere) {
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    for (const TensorToWrite& tensor : tensors) {
      if (tensor.name == "model.embed_tokens.weight") {
        tensors.push_back(tensor);
        tensors.back().name = "lm_head.weight";
        return;
      }
    }
  });
  EXPECT_EQ(folder.Message(), "accepted");
}

// A head beside the embedding of a model whose configuration ties the two.
void AddHead(const ModelFolder& folder, const std::vector<float>& head) {
  folder.EditTensors([&](std::vector<TensorToWrite>& tensors) {
    const auto embedding = std::ranges::find(tensors, "model.embed_tokens.weight", &TensorToWrite::name);
    tensors.push_back({"lm_head.weight",
                       "F32",
                       embedding->shape,
                       {reinterpret_cast<const uint8_t*>(head.data()), head.size() * sizeof(float)}});
  });
}

std::vector<float> Score(Policy& policy) {
  const GoldenSequences sequences(Expected("qwen2"));
  std::vector<float> logprobs(sequences.token_count);
  policy.Forward(sequences.views, Copy::kCurrent, 1.0, false, ViewOf(logprobs), {});
  return logprobs;
}

TEST(ModelFolderTest, ATiedHeadThatDiffersIsUsed) {
  const c10::InferenceMode inference;
  const ModelFolder folder, untied;
  const std::vector<float> head(300 * 32, 0.0F);
  AddHead(folder, head);
  AddHead(untied, head);
  untied.EditConfig([](json& config) { config["tie_word_embeddings"] = false; });
  PolicyOptions options = GoldenOptions("qwen2");
  Policy tied(options, 0);
  options.model = folder.path();
  Policy policy(options, 0);
  options.model = untied.path();
  Policy expected(options, 0);
  EXPECT_EQ(Score(policy), Score(expected));
  EXPECT_NE(Score(policy), Score(tied));
  ASSERT_EQ(policy.config().notes.size(), 1U);
  EXPECT_EQ(policy.config().notes[0], folder.path() +
                                          ": \"tie_word_embeddings\" is true, but \"lm_head.weight\" "
                                          "differs from the embedding: it is used as the head, as "
                                          "transformers does");
  // What is saved has the head, and says so.
  const ModelFolder saved;
  policy.Save(Copy::kCurrent, saved.path());
  EXPECT_EQ(json::parse(saved.Read("config.json"))["tie_word_embeddings"], false);
  options.model = saved.path();
  Policy again(options, 0);
  EXPECT_EQ(Score(again), Score(policy));
  EXPECT_THAT(folder.MessageOf([&] { tied.Load(Copy::kCurrent, folder.path()); }),
              testing::HasSubstr("DIR: \"lm_head.weight\" differs from the embedding"));
}

TEST(ModelFolderTest, ATiedHeadMayBeThereAlone) {
  const c10::InferenceMode inference;
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    std::ranges::find(tensors, "model.embed_tokens.weight", &TensorToWrite::name)->name = "lm_head.weight";
  });
  PolicyOptions options = GoldenOptions("qwen2");
  Policy expected(options, 0);
  options.model = folder.path();
  Policy policy(options, 0);
  EXPECT_EQ(Score(policy), Score(expected));
}

TEST(ModelFolderTest, WrongShape) {
  const ModelFolder folder;
  folder.EditConfig([](json& config) { config["intermediate_size"] = 64; });
  EXPECT_EQ(
      folder.Message(),
      "DIR/model.safetensors: tensor \"model.layers.0.mlp.gate_proj.weight\" has shape [48, 32]; config.json says "
      "[64, 32]");
}

TEST(ModelFolderTest, WrongDtype) {
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == "model.norm.weight") tensor.dtype = "I32";
    }
  });
  EXPECT_EQ(
      folder.Message(),
      "DIR/model.safetensors: tensor \"model.norm.weight\" has dtype I32; expected F32, BF16, F16 or F64 (weights "
      "must not be quantized)");
}

TEST(ModelFolderTest, NotFiniteWeights) {
  for (const float value :
       {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const ModelFolder folder;
    std::string content = folder.Read("model.safetensors");
    std::memcpy(content.data() + content.size() - 8, &value, 4);
    folder.Write("model.safetensors", content);
    EXPECT_EQ(folder.Message(),
              "DIR/model.safetensors: tensor \"model.norm.weight\" holds values that are not finite (NaN or infinity)");
  }
}

// ---- shards

class ShardedFolder : public ModelFolder {
 public:
  ShardedFolder() {
    const TensorFiles files(path());
    std::vector<TensorToWrite> shards[2];
    for (const auto& [name, tensor] : files.tensors()) {
      const size_t shard = names_.size() % 2;
      names_.push_back(name);
      shards[shard].push_back({name, tensor.dtype, tensor.shape, tensor.data});
      index_["weight_map"][name] = Shard(shard);
    }
    index_["metadata"]["total_size"] = 1;
    for (size_t i = 0; i < 2; ++i) WriteTensorFile(Path(Shard(i)), shards[i]);
    Remove("model.safetensors");
    WriteIndex();
  }
  static std::string Shard(size_t i) { return "model-0000" + std::to_string(i + 1) + "-of-00002.safetensors"; }
  void WriteIndex() const { Write("model.safetensors.index.json", index_.dump()); }

  json index_;
  std::vector<std::string> names_;
};

TEST(ModelFolderTest, ShardsAreOneModel) {
  const ShardedFolder folder;
  ASSERT_EQ(folder.Message(), "accepted");
  const ModelConfig config = ReadModelConfig(folder.path());
  ParameterSet sharded(config, at::kFloat, at::kCPU), whole(config, at::kFloat, at::kCPU);
  ReadParameters(folder.path(), config, sharded);
  ReadParameters(GoldenFolder("qwen2"), config, whole);
  EXPECT_EQ(ToDoubles(sharded.buffer()), ToDoubles(whole.buffer()));
}

TEST(ModelFolderTest, BrokenShards) {
  ShardedFolder folder;
  folder.Remove(ShardedFolder::Shard(1));
  EXPECT_EQ(
      folder.Message(),
      "DIR/model.safetensors.index.json: the shard \"model-00002-of-00002.safetensors\" that it lists is not in the "
      "folder");
  folder.Write(ShardedFolder::Shard(1), folder.Read(ShardedFolder::Shard(0)));
  EXPECT_EQ(folder.Message(), "DIR/model-00002-of-00002.safetensors: tensor \"" + folder.names_[0] +
                                  "\" is also in DIR/" + ShardedFolder::Shard(0));
  folder.Write("model.safetensors.index.json", "{}");
  EXPECT_EQ(folder.Message(), "DIR/model.safetensors.index.json: no \"weight_map\"");
  folder.index_["weight_map"][folder.names_[0]] = "../" + ShardedFolder::Shard(0);
  folder.WriteIndex();
  EXPECT_EQ(folder.Message(),
            "DIR/model.safetensors.index.json: tensor \"" + folder.names_[0] +
                "\" is said to be in \"../model-00001-of-00002.safetensors\": expected the name of a file "
                "in the same folder");
}

// transformers opens the shards that the index names, whatever tensors it says are in them.
TEST(ModelFolderTest, AnIndexThatNamesOtherTensors) {
  ShardedFolder folder;
  folder.index_["weight_map"][folder.names_[0]] = ShardedFolder::Shard(1);
  folder.index_["weight_map"]["model.absent.weight"] = ShardedFolder::Shard(0);
  folder.WriteIndex();
  EXPECT_EQ(folder.Message(), "accepted");
}

// ---- folders as other tools leave them

// A model saved without its head.
TEST(ModelFolderTest, NamesWithoutModel) {
  const ModelFolder folder;
  folder.EditTensors([](std::vector<TensorToWrite>& tensors) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name.starts_with("model.")) tensor.name.erase(0, 6);
    }
  });
  EXPECT_EQ(folder.Message(), "accepted");
}

TEST(ModelFolderTest, QuantizedFoldersAreCalledWhatTheyAre) {
  const ModelFolder model_opt;
  model_opt.Write("hf_quant_config.json", "{}");
  EXPECT_EQ(model_opt.Message(),
            "DIR/config.json: the weights are quantized by ModelOpt (\"hf_quant_config.json\"); give "
            "the unquantized model");
  const ModelFolder llama_cpp;
  llama_cpp.Remove("config.json");
  llama_cpp.Write("model.Q4_K_M.gguf", "GGUF");
  EXPECT_EQ(llama_cpp.Message(),
            "DIR: has model.Q4_K_M.gguf (GGUF) and no config.json; give the model's Hugging Face folder");
}

TEST(ModelFolderTest, GitLfsPointers) {
  for (const std::string name : {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}) {
    const ModelFolder folder;
    folder.Write(name, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 988097824\n");
    EXPECT_EQ(folder.Message(),
              "DIR/" + name +
                  ": is a Git LFS pointer, and the file itself was not downloaded; run `git lfs pull` "
                  "in that folder");
  }
}

TEST(ModelFolderTest, HalfOfASurrogatePair) {
  const ModelFolder folder;
  folder.Write("tokenizer_config.json", "{\"chat_template\": \"\\ud83d\"}");
  EXPECT_EQ(
      folder.Message(),
      "DIR/tokenizer_config.json: has half of a surrogate pair (\\ud800 to \\udfff) at byte 26: in JSON these are "
      "characters only in pairs");
}

TEST(ModelFolderTest, AFolderOfAHuggingFaceCache) {
  const c10::InferenceMode inference;
  const TemporaryFolder cache;
  const std::string folder = cache.path() + "/models--org--name";
  std::filesystem::create_directories(folder + "/refs");
  std::filesystem::create_directories(folder + "/snapshots");
  std::filesystem::copy(GoldenFolder("qwen2"), folder + "/snapshots/0a1b");
  std::ofstream(folder + "/refs/main") << "0a1b";
  PolicyOptions options = GoldenOptions("qwen2");
  Policy expected(options, 0);
  options.model = folder;
  Policy policy(options, 0);
  EXPECT_EQ(Score(policy), Score(expected));
  std::ofstream(folder + "/refs/main") << "ffff";
  EXPECT_THAT(
      ModelFolder().MessageOf([&] { Policy(options, 0); }),
      testing::HasSubstr("models--org--name: a Hugging Face cache folder whose refs/main names no folder under"));
}

// ---- config.json against the tokenizer

TEST(ModelFolderTest, MoreTokensThanEmbeddings) {
  const ModelFolder folder;
  folder.EditConfig([](json& config) { config["vocab_size"] = 290; });
  EXPECT_EQ(folder.Message(),
            "DIR: the tokenizer's token 'use' has the id 299, but \"vocab_size\" in config.json is 290");
}

TEST(ModelFolderTest, SavingWhereThereIsNoFolder) {
  Policy policy(GoldenOptions("qwen2"), 0);
  const ModelFolder folder;
  EXPECT_EQ(folder.MessageOf([&] { policy.Save(Copy::kCurrent, folder.path() + "/nowhere"); }),
            "DIR/nowhere/chat_template.jinja.tmp: cannot open: No such file or directory");
}

TEST(ModelFolderTest, ADeviceThatIsNotThere) {
  PolicyOptions options = GoldenOptions("qwen2");
  options.device = "abacus";
  const ModelFolder folder;
  EXPECT_EQ(folder.MessageOf([&] { Policy policy(options, 0); }), "device \"abacus\": expected cpu, cuda or cuda:N");
  options.device = "mps";
  EXPECT_EQ(folder.MessageOf([&] { Policy policy(options, 0); }), "device \"mps\": expected cpu, cuda or cuda:N");
}

}  // namespace
}  // namespace kgrpo::policy
