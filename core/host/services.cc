#include "host/services.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <compare>
#include <exception>
#include <numeric>
#include <span>
#include <utility>

#include "host/cancel.h"
#include "host/log.h"
#include "random/keyed.h"

namespace kgrpo {

// The context behind one kgrpo_host.
struct HostServices::InstanceServices {
  HostServices* services;
  std::string name;
  std::string cache_name;
  std::once_flag artifact_once, cache_once;
  std::string artifact_directory, cache_directory;  // empty until asked for
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
      // Nobody is left to tell: a line that cannot be logged must not end the run.
    }
  }

  static void Metric(void* context, kgrpo_str name, double value) noexcept {
    try {
      From(context).services->AddMetric(View(name), value);
    } catch (...) {
      // Out of memory for a figure: the allocation that matters will report it.
    }
  }

  static int Cancelled(void*) noexcept { return CancelRequested() ? 1 : 0; }
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

  // The interface has no way to fail here: the reason is logged, and what the plugin then writes fails in its own
  // words.
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
      // call_once has no threads to wait with: the empty text stands.
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

const kgrpo_host* HostServices::ForInstance(const std::string& name, const std::string& cache_name) {
  auto instance = std::make_unique<InstanceServices>();
  instance->services = this;
  instance->name = name;
  instance->cache_name = cache_name;

  kgrpo_host& host = instance->host;
  host.struct_size = sizeof(host);
  host.context = instance.get();
  host.log = InstanceServices::Log;
  host.metric = InstanceServices::Metric;
  host.cancelled = InstanceServices::Cancelled;
  host.artifact_directory = InstanceServices::ArtifactDirectory;
  host.cache_directory = InstanceServices::CacheDirectory;
  host.lock_device = InstanceServices::LockDevice;
  host.unlock_device = InstanceServices::UnlockDevice;
  host.random = InstanceServices::Random;
  host.rank = options_.rank;
  host.world_size = options_.world_size;
  host.rendezvous = Str(options_.rendezvous);

  instances_.push_back(std::move(instance));
  return &instances_.back()->host;
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
  std::map<std::string, double> means;
  for (auto& [name, points] : taken) {
    // Floating-point sums depend on the order, and figures must not depend on threads. strong_order has a place for
    // NaN.
    std::sort(points.begin(), points.end(), [](double a, double b) { return std::is_lt(std::strong_order(a, b)); });
    if (name.ends_with("_total")) {  // of the run so far: the latest is the greatest
      means[name] = points.back();
      continue;
    }
    means[name] = std::accumulate(points.begin(), points.end(), 0.0) / static_cast<double>(points.size());
  }
  return means;
}

}  // namespace kgrpo
