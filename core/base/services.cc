#include "base/services.h"

#include <kgrpo/options.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/cancel.h"
#include "base/keyed.h"
#include "base/log.h"

namespace kgrpo {
namespace {

using Json = nlohmann::json;

// Plugins' options: `options` is JSON; `path` is keys and array indices joined by dots. Each function throws
// kgrpo::Error: INVALID if the text is no JSON or the value has another type, NOT_FOUND if nothing is at the path.

const Json* Member(const Json& value, std::string_view key) {
  if (value.is_object()) {
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }
  size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool is_index = value.is_array() && error == std::errc() && end == key.data() + key.size();
  return is_index && index < value.size() ? &value[index] : nullptr;
}

Json ValueAt(std::string_view options, std::string_view path) {
  const Json whole = Json::parse(options, nullptr, /*allow_exceptions=*/false);
  if (whole.is_discarded()) throw Error(KGRPO_ERROR_INVALID, "the options are no JSON");
  const Json* value = &whole;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    value = Member(*value, path.substr(begin, end - begin));
    if (value == nullptr) throw Error(KGRPO_ERROR_NOT_FOUND, "options." + std::string(path) + " is not there");
    begin = end + 1;
  }
  return *value;
}

[[noreturn]] void Refuse(std::string_view path, const char* wanted, const Json& value) {
  throw Error(KGRPO_ERROR_INVALID,
              "options." + std::string(path) + ": expected " + wanted + ", got " + std::string(value.type_name()));
}

double OptionNumber(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_number()) Refuse(path, "a number", value);
  return value.get<double>();
}

int64_t OptionInteger(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_number_integer()) Refuse(path, "an integer", value);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    throw Error(KGRPO_ERROR_INVALID, "options." + std::string(path) + ": " + value.dump() + " is above 2^63 - 1");
  return value.get<int64_t>();
}

bool OptionFlag(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_boolean()) Refuse(path, "true or false", value);
  return value.get<bool>();
}

std::string OptionText(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_string()) Refuse(path, "a string", value);
  return value.get<std::string>();
}

size_t OptionCount(std::string_view options, std::string_view path) {
  const Json value = ValueAt(options, path);
  if (!value.is_structured()) Refuse(path, "an array or an object", value);
  return value.size();
}

}  // namespace

// The context behind one kgrpo_host.
struct HostServices::InstanceServices {
  HostServices* services;
  std::string name;
  std::string cache_name;
  std::once_flag artifact_once, cache_once;
  std::string artifact_directory, cache_directory;  // empty until asked for
  std::string plugin_directory;
  kgrpo_host host{};

  static InstanceServices& From(void* context) { return *static_cast<InstanceServices*>(context); }

  static void Log(void* context, uint32_t level, kgrpo_str message) noexcept {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    try {
      const auto spdlog_level = level < std::size(kLevels) ? kLevels[level] : spdlog::level::err;
      if (!spdlog::should_log(spdlog_level)) return;
      spdlog::log(spdlog_level, "{}: {}", From(context).name, PrintableText(View(message)));
    } catch (...) {
      // The log line cannot be reported anywhere else, and it must not end the run.
    }
  }

  static kgrpo_error* MakeErrorOf(void*, uint32_t code, kgrpo_str message) noexcept {
    return MakeError(static_cast<kgrpo_error_code>(code), View(message));
  }

  static kgrpo_error* DeclareMetric(void* context, const kgrpo_metric_declaration* declaration) noexcept {
    return Guard([&] { From(context).services->registry_.Declare(*declaration); });
  }

  static void ListMetrics(void* context, kgrpo_metric_declaration_sink sink) noexcept {
    From(context).services->registry_.ForEach(
        [&](const kgrpo_metric_declaration& declaration) { sink.put(sink.context, &declaration); });
  }

  static void AddPoint(void* context, kgrpo_str name, double value) noexcept {
    try {
      From(context).services->AddMetric(View(name), value);
    } catch (...) {
      // Out of memory while adding a metric: a more important allocation will fail and report it.
    }
  }

  static int32_t Cancelled(void*) noexcept { return CancelRequested() ? 1 : 0; }
  static void RequestStop(void* context, kgrpo_str reason) noexcept {
    try {
      spdlog::warn("{} asks to stop: {}", From(context).name, PrintableText(View(reason)));
    } catch (...) {
      // The stop must happen even if its log line fails.
    }
    RequestCancel();
  }

  static kgrpo_str ArtifactDirectory(void* context) noexcept {
    InstanceServices& self = From(context);
    return self.MadeOnce(&self.artifact_once, &self.artifact_directory,
                         [&] { return self.services->ArtifactRoot() / self.name; });
  }

  static kgrpo_str CacheDirectory(void* context) noexcept {
    InstanceServices& self = From(context);
    return self.MadeOnce(&self.cache_once, &self.cache_directory, [&] {
      const std::filesystem::path& root = self.services->options_.cache_root;
      return std::filesystem::absolute(root.empty() ? CacheRoot() : root) / self.cache_name;
    });
  }

  static kgrpo_str HostVersion(void*) noexcept { return KGRPO_LITERAL(KGRPO_VERSION); }
  static kgrpo_str PluginDirectory(void* context) noexcept { return Str(From(context).plugin_directory); }

  // The interface cannot return an error here. The reason is logged; the plugin then fails with its own message when it
  // writes.
  template <typename Place>
  kgrpo_str MadeOnce(std::once_flag* once, std::string* directory, Place place) noexcept {
    try {
      std::call_once(*once, [&] {
        try {
          *directory = place().string();
          MakeDirectories(*directory);
        } catch (const std::exception& error) {
          Log(this, KGRPO_LOG_ERROR, Str(error.what()));
        }
      });
    } catch (...) {
      // std::call_once itself fails without thread support; the empty text is returned.
    }
    return Str(*directory);
  }

  static kgrpo_error* LockDevice(void* context, kgrpo_str device) noexcept {
    return Guard([&] { From(context).services->device_locks_.Lock(View(device)); });
  }

  static void UnlockDevice(void* context, kgrpo_str device) noexcept {
    kgrpo_error* error = Guard([&] { From(context).services->device_locks_.Unlock(View(device)); });
    if (error == nullptr) return;
    Log(context, KGRPO_LOG_ERROR, error->message);
    error->release(error);
  }

  static uint64_t Random(void* context, const uint64_t* key, size_t key_size, uint64_t index) noexcept {
    const InstanceServices& self = From(context);
    return Keyed(self.services->options_.seed, self.name, std::span(key, key_size), index);
  }

  static kgrpo_error* NumberOption(void*, kgrpo_str options, kgrpo_str path, double* out) noexcept {
    return Guard([&] { *out = OptionNumber(View(options), View(path)); });
  }
  static kgrpo_error* IntegerOption(void*, kgrpo_str options, kgrpo_str path, int64_t* out) noexcept {
    return Guard([&] { *out = OptionInteger(View(options), View(path)); });
  }
  static kgrpo_error* FlagOption(void*, kgrpo_str options, kgrpo_str path, int32_t* out) noexcept {
    return Guard([&] { *out = OptionFlag(View(options), View(path)) ? 1 : 0; });
  }
  static kgrpo_error* TextOption(void*, kgrpo_str options, kgrpo_str path, kgrpo_text_sink out) noexcept {
    return Guard([&] {
      const std::string text = OptionText(View(options), View(path));
      out.put(out.context, Str(text));
    });
  }
  static kgrpo_error* CountOption(void*, kgrpo_str options, kgrpo_str path, size_t* out) noexcept {
    return Guard([&] { *out = OptionCount(View(options), View(path)); });
  }

  static const kgrpo_rank_info* RankInfo(void* context) noexcept {
    HostServices& services = *From(context).services;
    return services.collective_->info(services.collective_context_);
  }
  // Hands a call on to the transport.
  template <auto kFunction, typename... Arguments>
  static kgrpo_error* Collectively(void* context, Arguments... arguments) noexcept {
    HostServices& services = *From(context).services;
    const PluginCall call(services.transport_, "collective");  // tells a rank that waits from one that computes
    return (services.collective_->*kFunction)(services.collective_context_, arguments...);
  }

  // Interface offered to plugins: the transport's functions, wrapped so that each counts as a call of the transport.
  static kgrpo_collective_interface Offered(const kgrpo_collective_interface& collective) {
    const bool in_background = ReducesInBackground(collective);
    return {
        .struct_size = sizeof(kgrpo_collective_interface),
        .info = RankInfo,
        .all_reduce = Collectively<&kgrpo_collective_interface::all_reduce, const kgrpo_tensor*, uint32_t>,
        .reduce_scatter = Collectively<&kgrpo_collective_interface::reduce_scatter, const kgrpo_tensor*>,
        .all_gather = Collectively<&kgrpo_collective_interface::all_gather, const kgrpo_tensor*>,
        .broadcast = Collectively<&kgrpo_collective_interface::broadcast, const kgrpo_tensor*, uint32_t>,
        .begin_reduce_scatter = in_background ? Collectively<&kgrpo_collective_interface::begin_reduce_scatter,
                                                             const kgrpo_tensor*, size_t, size_t, void*>
                                              : nullptr,
        .finish_reductions = in_background ? Collectively<&kgrpo_collective_interface::finish_reductions> : nullptr};
  }

  static const void* GetInterface(void* context, kgrpo_str id) noexcept {
    static constexpr kgrpo_host_interface kInterface = {sizeof(kgrpo_host_interface),
                                                        MakeErrorOf,
                                                        Log,
                                                        DeclareMetric,
                                                        ListMetrics,
                                                        AddPoint,
                                                        Cancelled,
                                                        RequestStop,
                                                        ArtifactDirectory,
                                                        CacheDirectory,
                                                        LockDevice,
                                                        UnlockDevice,
                                                        Random,
                                                        HostVersion,
                                                        PluginDirectory};
    static constexpr kgrpo_options_interface kOptions = {
        sizeof(kgrpo_options_interface), NumberOption, IntegerOption, FlagOption, TextOption, CountOption};
    if (View(id) == KGRPO_HOST_INTERFACE) return &kInterface;
    if (View(id) == KGRPO_OPTIONS_INTERFACE) return &kOptions;
    const HostServices& services = *From(context).services;
    return services.collective_ != nullptr && View(id) == KGRPO_COLLECTIVE_INTERFACE ? &services.offered_ : nullptr;
  }
};

HostServices::HostServices(HostOptions options)
    : options_(std::move(options)),
      device_locks_({.identity = CudaDeviceIdentity, .directory = MachineLockDirectory(), .say = [](const auto& text) {
                       spdlog::info("{}", PrintableText(text));
                     }}) {}

HostServices::~HostServices() = default;

std::filesystem::path HostServices::ArtifactRoot() {
  if (!options_.artifact_root.empty()) return std::filesystem::absolute(options_.artifact_root);
  std::call_once(temporary_made_, [&] { temporary_.emplace(); });
  return temporary_->path();
}

const kgrpo_host* HostServices::ForInstance(const std::string& name, const std::string& cache_name,
                                            const std::filesystem::path& plugin_directory) {
  auto instance = std::make_unique<InstanceServices>();
  instance->services = this;
  instance->name = name;
  instance->cache_name = cache_name;
  instance->plugin_directory = plugin_directory.string();
  instance->host = {instance.get(), InstanceServices::GetInterface};
  instances_.push_back(std::move(instance));
  return &instances_.back()->host;
}

void HostServices::SetCollective(const kgrpo_collective_interface* collective, void* context) {
  collective_ = collective;
  collective_context_ = context;
  offered_ = InstanceServices::Offered(*collective);
  transport_ = PluginOfTable(collective, "transport");
}

void HostServices::AddMetric(std::string_view name, double value) {
  std::lock_guard lock(metrics_mutex_);
  auto points = metrics_.find(name);
  if (points == metrics_.end()) points = metrics_.emplace(name, std::vector<double>()).first;
  points->second.push_back(value);
}

std::map<std::string, double> HostServices::TakeMetrics() {
  decltype(metrics_) taken;
  {
    std::lock_guard lock(metrics_mutex_);
    taken.swap(metrics_);
  }
  std::map<std::string, double> combined;
  for (auto& [name, points] : taken) {
    // Floating-point sums depend on the order of the points, and metrics must not depend on threads. strong_order also
    // orders NaN.
    std::sort(points.begin(), points.end(), [](double a, double b) { return std::is_lt(std::strong_order(a, b)); });
    const DeclaredMetric* declared = registry_.Find(name);
    const kgrpo_metric_combination combination = declared == nullptr ? KGRPO_METRIC_MEAN : declared->combination;
    if (combination == KGRPO_METRIC_MAXIMUM) {
      combined[name] = points.back();
      continue;
    }
    const double sum = std::accumulate(points.begin(), points.end(), 0.0);
    combined[name] = combination == KGRPO_METRIC_SUM ? sum : sum / static_cast<double>(points.size());
  }
  return combined;
}

}  // namespace kgrpo
