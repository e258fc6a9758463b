#include "validate/session.h"

#include <kgrpo/sdk/text.h>
#include <kgrpo/support/dump_json.h>
#include <kgrpo/support/number_text.h>  // Format
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <thread>

namespace kgrpo::validate {
namespace {

using Json = nlohmann::json;

struct Skipped {
  std::string why;
};
struct Warned {
  std::string why;
};

// The text on the standard output from `*seen` on. In a child the standard output is a file of its own.
std::string NewOutput(size_t* seen) {
  std::cout.flush();
  std::fflush(stdout);
  struct stat status = {};
  if (fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return "";
  std::string text(static_cast<size_t>(status.st_size) - *seen, '\0');
  const ssize_t count = pread(STDOUT_FILENO, text.data(), text.size(), static_cast<off_t>(*seen));
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  *seen += text.size();
  return text;
}

}  // namespace

void Fail(const std::string& why) { throw Error(KGRPO_ERROR_INTERNAL, why); }
void Skip(const std::string& why) { throw Skipped{why}; }
void Warn(const std::string& why) { throw Warned{why}; }

void Session::Check(const std::string& name, const std::function<std::string()>& body) {
  Write({{"begin", name}});
  Json line = {{"end", name}, {"outcome", "passed"}};
  try {
    line["detail"] = body();
  } catch (const Skipped& skipped) {
    line["outcome"] = "skipped";
    line["detail"] = skipped.why;
  } catch (const Warned& warned) {
    line["outcome"] = "warning";
    line["detail"] = warned.why;
  } catch (const std::exception& error) {
    line["outcome"] = "failed";
    line["detail"] = error.what();
  }
  const std::string output = NewOutput(&output_seen_);
  if (!output.empty() && line["outcome"] != "failed") {
    line["outcome"] = "failed";
    line["detail"] = "it wrote " + std::to_string(output.size()) + " bytes on the standard output (" +
                     DumpJson(Json(output.substr(0, 40)), -1, true) +
                     "), where the host's results stand: log through the host instead";
  }
  Write(line);
}

void Session::Write(const Json& line) { write_(DumpJson(line) + "\n"); }

std::string TakeMessage(kgrpo_error* error) {
  if (error->struct_size < KGRPO_ERROR_SIZE_1) Fail("the error's struct_size is " + std::to_string(error->struct_size));
  if (error->release == nullptr) Fail("the error has no release");
  std::string message = Copy(error->message);
  const uint32_t code = error->code;
  error->release(error);
  if (message.empty()) Fail("the error has no message");
  if (code < KGRPO_ERROR_INVALID || code > KGRPO_ERROR_NO_SCORE)
    Fail("the error has the unknown code " + std::to_string(code));
  return message;
}

void OnTwoThreads(const std::function<void()>& body) {
  std::exception_ptr failures[2];
  const auto run = [&](size_t thread) {
    try {
      for (int i = 0; i < 3; ++i) body();
    } catch (...) {
      failures[thread] = std::current_exception();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

std::string Shown(double number) { return Format("%.9g", number); }

}  // namespace kgrpo::validate
