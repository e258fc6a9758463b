// The plugin coder_gpt4o: implements kgrpo.coder/1 by the coder of coder.h and the client of completion_client.h.
#include <kgrpo/coder.h>
#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/plugin.h>

#include "coder_gpt4o/coder.h"
#include "coder_gpt4o/completion_client.h"
#include "coder_gpt4o/options.h"
#include "coder_gpt4o/recording.h"
#include "coder_shared/request.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using kgrpo::Error;
using kgrpo::Guard;
using kgrpo::Host;
using kgrpo::Str;
using kgrpo::View;
namespace coder_gpt4o = kgrpo::coder_gpt4o;

struct kgrpo_coder {
  std::optional<coder_gpt4o::Coder> coder;
  // Declared last so that it is destroyed first: its thread calls the coder. Null in mode replay.
  std::unique_ptr<coder_gpt4o::CompletionClient> client;
};

namespace {

using coder_gpt4o::Mode;
using coder_gpt4o::Recording;

kgrpo_str OptionsSchema() { return Str(coder_gpt4o::OptionsSchema()); }

// Opens the recording that the options name, read-only; throws if it is none.
std::shared_ptr<Recording> OpenNamed(const std::string& named) {
  try {
    return std::make_shared<Recording>(coder_gpt4o::RecordingFile(named), Recording::Access::kReplay);
  } catch (const Error& error) {
    throw Error(error.code(), std::string("options.recording: ") + error.what());
  }
}

// The cache's file may be missing, empty, or locked by the process that fills it.
void CheckCache(const std::string& named) {
  std::error_code error;
  const std::filesystem::path file = coder_gpt4o::RecordingFile(named);
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) == 0) return;
  try {
    OpenNamed(named);
  } catch (const Error& refused) {
    if (refused.code() != KGRPO_ERROR_UNAVAILABLE) throw;
  }
}

// Opens the recordings of former ranks, if the run was resumed with fewer ranks. Rank N's recording is opened by rank N
// modulo the present number of ranks. `own`: this rank's artifacts/coder or artifacts/rank-N/coder.
std::vector<std::shared_ptr<Recording>> OpenFormer(const std::filesystem::path& own, const kgrpo::Collective& ranks) {
  namespace fs = std::filesystem;
  const fs::path artifacts = ranks.rank() == 0 ? own.parent_path() : own.parent_path().parent_path();
  std::vector<std::shared_ptr<Recording>> former;
  for (const fs::directory_entry& entry : fs::directory_iterator(artifacts)) {
    const fs::path file = entry.path() / own.filename() / coder_gpt4o::kRecordingName;
    unsigned rank = 0;
    if (std::sscanf(entry.path().filename().c_str(), "rank-%u", &rank) != 1 || !fs::exists(file)) continue;
    if (rank >= ranks.size() && rank % ranks.size() == ranks.rank())
      former.push_back(std::make_shared<Recording>(file, Recording::Access::kReadWrite));
  }
  return former;
}

coder_gpt4o::Recordings RecordingsOf(const Host& host, const kgrpo::Collective& ranks,
                                     const coder_gpt4o::CoderOptions& options) {
  namespace fs = std::filesystem;
  coder_gpt4o::Recordings recordings;
  if (options.mode == Mode::kReplay) {
    recordings.replay = OpenNamed(options.recording);
    return recordings;
  }
  recordings.open_run = [host] {
    return std::make_shared<Recording>(fs::path(host.ArtifactDirectory()) / coder_gpt4o::kRecordingName,
                                       Recording::Access::kReadWrite);
  };
  recordings.open_former = [host, ranks] { return OpenFormer(host.ArtifactDirectory(), ranks); };
  if (options.mode != Mode::kCache) return recordings;
  if (!options.recording.empty()) CheckCache(options.recording);
  recordings.open_cache = [host, named = options.recording] {
    const fs::path file = named.empty() ? fs::path(host.CacheDirectory()) / coder_gpt4o::kRecordingName
                                        : coder_gpt4o::RecordingFile(named);
    return std::make_shared<Recording>(file, Recording::Access::kReadWrite);
  };
  return recordings;
}

constexpr const char* kGroup = "Coder";
constexpr kgrpo::MetricDeclaration kMetrics[] = {
    {"coder/recorded_rate", "requests that a recording answered", kGroup, KGRPO_METRIC_FRACTION},
    {"coder/answer_seconds", "the service's time for an answer", kGroup, KGRPO_METRIC_SECONDS, "",
     KGRPO_METRIC_LOWER_IS_BETTER},
    {"coder/attempts", "attempts an answer", kGroup, KGRPO_METRIC_NUMBER, "", KGRPO_METRIC_LOWER_IS_BETTER},
    {"coder/lost_cost", "cost of attempts without an answer", kGroup, KGRPO_METRIC_DOLLARS, "",
     KGRPO_METRIC_LOWER_IS_BETTER, KGRPO_METRIC_SUM},
};

kgrpo_error* Create(const kgrpo_host* raw_host, kgrpo_str options_text, kgrpo_coder** out) {
  return Guard([&] {
    const kgrpo::Collective ranks(raw_host);
    coder_gpt4o::CoderOptions options = coder_gpt4o::ReadOptions(
        View(options_text), [](const std::string& name) { return std::getenv(name.c_str()); }, ranks.size());
    const Host host(raw_host);
    for (const kgrpo::MetricDeclaration& metric : kMetrics) host.Declare(metric);
    auto self = std::make_unique<kgrpo_coder>();
    coder_gpt4o::Service service;
    if (options.mode != Mode::kReplay) {
      coder_gpt4o::ClientOptions& client = options.client;
      client.seed = host.Random({}, 0);
      client.notice = [host](const std::string& message) { host.Warn(message); };
      client.retry_notice = [host](const std::string& message) { host.Debug(message); };
      self->client = std::make_unique<coder_gpt4o::CompletionClient>(client);
      service.send = [client = self->client.get()](coder_gpt4o::CompletionRequest request,
                                                   std::function<void(coder_gpt4o::Completion)> done) {
        client->Send(std::move(request), std::move(done));
      };
      service.cancel = [client = self->client.get()] { client->Cancel(); };
      service.address = self->client->Address();
    }
    if (options.mode != Mode::kReplay && !options.price_known && !options.client.api_key.empty())
      host.Warn("cost unknown: no price for " + options.model + "; add prices: {" + options.model +
                ": {prompt: ..., completion: ...}}, in US dollars a million tokens");
    if (const std::string odd = coder_gpt4o::PriceWarning(options); !odd.empty()) host.Warn(odd);
    if (options.mode == Mode::kCache && options.temperature.value_or(1) > 0 && !options.seed && !options.seed_of_sample)
      host.Warn(
          "mode cache shares one answer among equal requests, so temperature makes no difference between samples: set "
          "seed: sample for an answer of each sample's own");
    std::string address = std::move(options.client.base_url);
    options.client = {};  // only the client keeps the key
    options.client.base_url = std::move(address);
    coder_gpt4o::Recordings recordings = RecordingsOf(host, ranks, options);
    self->coder.emplace(
        std::move(options), std::move(service), std::move(recordings),
        coder_gpt4o::Reports{[host](std::string_view message) { host.Warn(message); },
                             [host](std::string_view name, double value) { host.Metric(name, value); },
                             [host](kgrpo::MetricRegistry* names) {
                               host.ForEachDeclaration([names](const kgrpo_metric_declaration& declaration) {
                                 names->Declare(declaration);
                               });
                             }});
    *out = self.release();
  });
}

void Destroy(kgrpo_coder* self) { delete self; }

kgrpo_error* Implement(kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_coder_done done) {
  return Guard([&] {
    kgrpo::coder_shared::RequireWhole(request, done, "coder_gpt4o");
    self->coder->Implement(*request, done);
  });
}

void Cancel(kgrpo_coder* self) { self->coder->Cancel(); }

kgrpo_error* DescribeRequest(const kgrpo_coder* self, const kgrpo_coder_request* request, kgrpo_text_sink sink) {
  return Guard([&] {
    kgrpo::coder_shared::RequireWhole(request, "coder_gpt4o");
    const std::string text = self->coder->Describe(*request);
    sink.put(sink.context, Str(text));
  });
}

kgrpo_error* Describe(const kgrpo_coder* self, kgrpo_text_sink sink) {
  return Guard([&] {
    const std::string text = self->coder->Describe();
    sink.put(sink.context, Str(text));
  });
}

kgrpo_error* Spending(const kgrpo_coder* self, kgrpo_coder_spending* out) {
  return Guard([&] {
    const coder_gpt4o::Spending spending = self->coder->Spending();
    out->cost = spending.cost;
    out->lost_cost = spending.lost_cost;
  });
}

constexpr kgrpo_coder_interface kInterface = {
    sizeof(kgrpo_coder_interface),
    OptionsSchema,
    Create,
    Destroy,
    Implement,
    Cancel,
    nullptr,
    DescribeRequest,
    Describe,
    Spending,
    /*get_extension=*/nullptr,
};

}  // namespace

KGRPO_PLUGIN("coder_gpt4o", KGRPO_VERSION, "GPT-4o, or any model behind OpenAI's chat completions, writes the kernels",
             {KGRPO_CODER_INTERFACE, &kInterface});
