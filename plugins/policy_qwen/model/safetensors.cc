#include "policy_qwen/model/safetensors.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace kgrpo::policy {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and is read in place");

constexpr uint64_t kMaxHeaderSize = 100'000'000;  // the format's own limit
constexpr size_t kLengthSize = sizeof(uint64_t);

const std::map<std::string, uint64_t>& ItemSizes() {
  static const std::map<std::string, uint64_t> sizes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},     {"I32", 4},     {"I16", 2}, {"I8", 1},
      {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1},   {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
  return sizes;
}

[[noreturn]] void Fail(const std::string& path, const std::string& message) {
  throw Error(KGRPO_ERROR_INVALID, path + ": " + message);
}

// Parses a JSON object whose keys are the tensors' names, none of them twice (nlohmann alone would keep the last).
json ParseHeader(const std::string& path, std::string_view text) {
  std::set<std::string> seen;
  const auto check_key = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1 && !seen.insert(value.get<std::string>()).second) {
      Fail(path, "the header names tensor \"" + value.get<std::string>() + "\" twice");
    }
    return true;
  };
  try {
    json header = json::parse(text.begin(), text.end(), check_key);
    if (!header.is_object()) Fail(path, "the header is not a JSON object");
    return header;
  } catch (const json::exception& error) {
    Fail(path, std::string("the header is not valid JSON: ") + error.what());
  }
}

struct Extent {
  uint64_t begin;
  uint64_t end;
  std::string name;
};

// Reads one entry {dtype, shape, data_offsets}; offsets are relative to the data.
StoredTensor ReadEntry(const std::string& path, const std::string& name, const json& entry,
                       std::span<const uint8_t> data, Extent& extent) {
  const std::string where = "tensor \"" + name + "\": ";
  const auto is_size = [](const json& value) { return value.is_number_unsigned(); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string()) Fail(path, where + "no dtype");
  if (!entry.contains("shape") || !entry["shape"].is_array() || !std::ranges::all_of(entry["shape"], is_size)) {
    Fail(path, where + "no shape, or a shape that is not a list of sizes");
  }
  if (!entry.contains("data_offsets") || !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2 ||
      !std::ranges::all_of(entry["data_offsets"], is_size)) {
    Fail(path, where + "no data_offsets, or not a pair of positions");
  }

  StoredTensor tensor;
  tensor.file = path;
  tensor.dtype = entry["dtype"].get<std::string>();
  const auto item = ItemSizes().find(tensor.dtype);
  if (item == ItemSizes().end()) Fail(path, where + "unknown dtype \"" + tensor.dtype + "\"");
  uint64_t size = item->second;
  for (const json& extent_json : entry["shape"]) {
    const uint64_t dimension = extent_json.get<uint64_t>();
    if (__builtin_mul_overflow(size, dimension, &size) || dimension > (uint64_t{1} << 48)) {
      Fail(path, where + "its shape " + entry["shape"].dump() + " is too large to be true");
    }
    tensor.shape.push_back(static_cast<int64_t>(dimension));
  }
  extent = {entry["data_offsets"][0].get<uint64_t>(), entry["data_offsets"][1].get<uint64_t>(), name};
  if (extent.begin > extent.end) Fail(path, where + "its data ends before it begins");
  if (extent.end > data.size()) {
    Fail(path, where + "its data ends at byte " + std::to_string(extent.end) +
                   " of the data, but the file holds only " + std::to_string(data.size()) +
                   ": the file is truncated; copy or download it again");
  }
  if (extent.end - extent.begin != size) {
    Fail(path, where + "shape " + ShapeText(tensor.shape) + " of " + tensor.dtype + " takes " + std::to_string(size) +
                   " bytes, but its data_offsets span " + std::to_string(extent.end - extent.begin));
  }
  tensor.data = data.subspan(extent.begin, size);
  return tensor;
}

// The data must be covered exactly: no byte twice, none unused.
void CheckCoverage(const std::string& path, std::vector<Extent> extents, uint64_t data_size) {
  std::ranges::sort(
      extents, [](const Extent& a, const Extent& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t covered = 0;
  std::string previous = "the header";
  for (const Extent& extent : extents) {
    if (extent.begin < covered) Fail(path, "tensors \"" + previous + "\" and \"" + extent.name + "\" overlap");
    if (extent.begin > covered) {
      Fail(path, "bytes " + std::to_string(covered) + " to " + std::to_string(extent.begin) +
                     " of the data, before tensor \"" + extent.name + "\", belong to no tensor");
    }
    covered = extent.end;
    previous = extent.name;
  }
  if (covered != data_size) {
    Fail(path, "the last " + std::to_string(data_size - covered) + " bytes belong to no tensor");
  }
}

constexpr const char *kSingleFile = "/model.safetensors", *kShardIndex = "/model.safetensors.index.json";

}  // namespace

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

bool HasTensorFiles(const std::string& folder) {
  return FileExists(folder + kSingleFile) || FileExists(folder + kShardIndex);
}

TensorFiles::TensorFiles(const std::string& folder) {
  const std::string single = folder + kSingleFile, index = folder + kShardIndex;
  if (FileExists(single)) {
    Open(single);
  } else if (FileExists(index)) {
    OpenShards(folder, index);
  } else if (FileExists(folder + "/pytorch_model.bin") || FileExists(folder + "/pytorch_model.bin.index.json")) {
    throw Error(KGRPO_ERROR_UNSUPPORTED,
                folder +
                    ": has pytorch_model.bin but no model.safetensors; save it again with transformers' "
                    "save_pretrained, which writes safetensors");
  } else {
    throw Error(KGRPO_ERROR_NOT_FOUND, folder +
                                           ": no weights: neither model.safetensors nor "
                                           "model.safetensors.index.json is there (\"init\": \"random\" needs none)");
  }
  // As transformers opens them: a model saved without its head has names without "model.".
  if (!tensors_.contains("embed_tokens.weight")) return;
  for (auto& [name, tensor] : std::exchange(tensors_, {}))
    tensors_.emplace((name.starts_with("lm_head.") || name.starts_with("model.") ? "" : "model.") + name,
                     std::move(tensor));
}

TensorFiles TensorFiles::OfFile(const std::string& path) {
  TensorFiles files;
  files.Open(path);
  return files;
}

void TensorFiles::Open(const std::string& path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  const std::span<const uint8_t> bytes = files_.back()->bytes();
  if (bytes.size() < kLengthSize) {
    Fail(path, "holds " + std::to_string(bytes.size()) + " bytes: too short for a safetensors file");
  }
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), kLengthSize);
  if (header_size > kMaxHeaderSize) {
    Fail(path, "its header would be " + std::to_string(header_size) + " bytes long: not a safetensors file");
  }
  if (header_size > bytes.size() - kLengthSize) {
    Fail(path, "its header is " + std::to_string(header_size) + " bytes long, but the file holds only " +
                   std::to_string(bytes.size() - kLengthSize) + " after the length: the file is truncated");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthSize, header_size);
  if (text.empty() || text.front() != '{') Fail(path, "the header does not begin with '{': not a safetensors file");

  const std::span<const uint8_t> data = bytes.subspan(kLengthSize + header_size);
  std::vector<Extent> extents;
  const json header = ParseHeader(path, text);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Extent extent;
    StoredTensor tensor = ReadEntry(path, name, entry, data, extent);
    extents.push_back(std::move(extent));
    const auto [position, is_new] = tensors_.emplace(name, std::move(tensor));
    if (!is_new) Fail(path, "tensor \"" + name + "\" is also in " + position->second.file);
  }
  CheckCoverage(path, std::move(extents), data.size());
}

void TensorFiles::OpenShards(const std::string& folder, const std::string& index_path) {
  const json index = ReadJsonObject(index_path);
  if (!index.contains("weight_map") || !index["weight_map"].is_object()) Fail(index_path, "no \"weight_map\"");
  std::set<std::string> shards;
  for (const auto& [name, file] : index["weight_map"].items()) {
    // A shard is a file of this folder: a path would read elsewhere.
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos) {
      Fail(index_path, "tensor \"" + name + "\" is said to be in " + file.dump() +
                           ": expected the name of a file in the same folder");
    }
    shards.insert(file.get<std::string>());
  }
  for (const std::string& shard : shards) {
    if (!FileExists(folder + "/" + shard)) {
      Fail(index_path, "the shard \"" + shard + "\" that it lists is not in the folder");
    }
    Open(folder + "/" + shard);
  }
}

void WriteTensorFile(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::vector<std::string_view> pieces(2);
  uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the data, as the format's own writer does
  const uint64_t length = text.size();
  pieces[0] = std::string_view(reinterpret_cast<const char*>(&length), kLengthSize);
  pieces[1] = text;
  WriteFileAtomically(path, pieces);
}

}  // namespace kgrpo::policy
