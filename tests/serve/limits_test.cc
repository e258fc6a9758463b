// The service under stress: more work than it can do, clients that leave, stall or send too much, and its own end.
#include <sys/socket.h>

#include <netinet/in.h>
#include <time.h>

#include <kgrpo/support/closest.h>  // JoinedText
#include "running_service.h"

namespace kgrpo::test {
namespace {

using ServeLimitsTest = ServeTest;

// A plain connection.
class Socket {
 public:
  explicit Socket(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Socket() { Close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool Send(const std::string& text) const {
    return send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Everything until the other side ends.
  std::string ReadAll() const {
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }
  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
};

std::string PostText(const std::string& body) {
  return "POST /v1/evaluations HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

const Json kHeld = {{"problem", "one"}, {"source", "hold"}};
const Json kQuick = {{"problem", "one"}, {"source", "x"}};

TEST_F(ServeLimitsTest, AFullQueueIsSaidWithWhenToComeBack) {
  RunningService running({.workers = 1, .queue = 2});
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i)  // one runs, two wait
    clients.emplace_back([&] { EXPECT_EQ(Post(running.Client(), kHeld).status, 200); });
  ASSERT_TRUE(Eventually([&] { return Get(running.Client(), "/healthz").json["waiting"] == 2; }));
  const Answer refused = Post(running.Client(), kQuick);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["error"]["code"], "queue_full");
  const auto retry_after = refused.headers.find("Retry-After");
  ASSERT_NE(retry_after, refused.headers.end());
  EXPECT_GE(std::stoi(retry_after->second), 1);
  const Answer too_many = Post(running.Client(), {{"evaluations", {kQuick, kQuick, kQuick}}});
  EXPECT_EQ(too_many.status, 413);
  judge().released = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(Post(running.Client(), kQuick).status, 200);
}

TEST_F(ServeLimitsTest, AClientThatLeavesCancelsWhatItAskedFor) {
  RunningService running({.workers = 1, .queue = 10});
  Socket leaving(running.port());
  ASSERT_TRUE(leaving.Send(PostText(Json{{"evaluations", {kHeld, kHeld, kHeld}}}.dump())));
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  leaving.Close();
  EXPECT_TRUE(Eventually([] { return judge().cancelled == 1; }));
  EXPECT_TRUE(Eventually([&] { return running.service().active() == 0; }));
  EXPECT_EQ(judge().evaluations, 1) << "those that waited were dropped";
  EXPECT_EQ(Post(running.Client(), kQuick).status, 200);
}

TEST_F(ServeLimitsTest, AClientThatLeavesAStreamCancelsTheRest) {
  RunningService running({.workers = 1, .queue = 10});
  Socket leaving(running.port());
  ASSERT_TRUE(leaving.Send(PostText(Json{{"stream", true}, {"evaluations", {kQuick, kHeld, kHeld}}}.dump())));
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  leaving.Close();
  EXPECT_TRUE(Eventually([] { return judge().cancelled == 1; }));
  EXPECT_TRUE(Eventually([&] { return running.service().active() == 0; }));
  EXPECT_EQ(judge().evaluations, 2);
}

TEST_F(ServeLimitsTest, ALongListDoesNotHoldUpASingleKernel) {
  RunningService running({.workers = 1, .queue = 100});
  Json list = Json::array({kHeld});
  for (int i = 0; i < 50; ++i) list.push_back(kQuick);
  int before = 0;
  std::thread batch([&] { EXPECT_EQ(Post(running.Client(), {{"evaluations", list}}).status, 200); });
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  std::thread single([&] {
    EXPECT_EQ(Post(running.Client(), {{"problem", "two"}, {"source", "x"}}).status, 200);
    before = judge().evaluations;
  });
  ASSERT_TRUE(Eventually([&] { return Get(running.Client(), "/healthz").json["waiting"] == 51; }));
  EXPECT_EQ(judge().evaluations, 1);
  judge().released = true;
  single.join();
  batch.join();
  EXPECT_EQ(judge().evaluations, 52);
  EXPECT_GT(before, 0);
}

TEST_F(ServeLimitsTest, WantsItsToken) {
  RunningService running({.tokens = {{"", "secret"}}});
  EXPECT_EQ(Post(running.Client(), kQuick).status, 401);
  EXPECT_EQ(Get(running.Client(), "/metrics").status, 401);
  EXPECT_EQ(Get(running.Client(), "/healthz").status, 200);
  const auto with = [&](const char* token) {
    httplib::Client client = running.Client();
    client.set_bearer_token_auth(token);
    return Post(std::move(client), kQuick).status;
  };
  EXPECT_EQ(with("secret"), 200);
  EXPECT_EQ(with("secres"), 401);
  EXPECT_EQ(with("secret2"), 401);
  EXPECT_EQ(with(""), 401);
}

TEST_F(ServeLimitsTest, TokensHaveNamesAndLimits) {
  std::vector<std::string> lines;
  std::mutex mutex;
  serve::ServiceOptions options;
  options.tokens = {{"small", "one", 2}, {"large", "two", 0}};
  options.log = [&](const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex);
    lines.push_back(line);
  };
  RunningService running(std::move(options));
  const auto post = [&](const char* token, const Json& body) {
    httplib::Client client = running.Client();
    client.set_bearer_token_auth(token);
    return Post(std::move(client), body);
  };
  std::thread held([&] { EXPECT_EQ(post("one", kHeld).status, 200); });
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  const Answer refused = post("one", {{"evaluations", {kQuick, kQuick}}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json["error"]["code"], "client_limit");
  judge().released = true;
  held.join();
  EXPECT_EQ(post("two", {{"evaluations", {kQuick, kQuick, kQuick}}}).status, 200);
  EXPECT_EQ(post("one", {{"evaluations", {kQuick, kQuick}}}).status, 200) << "the limit is given back";
  EXPECT_EQ(post("three", kQuick).status, 401);
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    return lines.size() == 5;
  }));
  EXPECT_THAT(JoinedText(lines, "\n"), testing::HasSubstr("token=large"));
}

TEST_F(ServeLimitsTest, AFileOfTokensIsCheckedWhole) {
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "tokens.yaml").string();
  const auto read = [&](const std::string& text, std::filesystem::perms others = std::filesystem::perms::none) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write | others);
    return serve::ReadTokens(file, text);
  };
  const std::list<serve::ClientToken> tokens = read("- {name: a, token: s1, evaluations: 8}\n- {name: b, token: s2}\n");
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens.front().most_under_way, 8U);
  const std::string found = MessageOf(
      [&] {
        read("- {name: a, token: s1, evaluations: none}\n- {name: a, token: s1}\n- {name: c, tokens: x}\n",
             std::filesystem::perms::group_read);
      },
      KGRPO_ERROR_INVALID);
  for (const char* part : {"other users can read", ":1:37: evaluations", ":2:3: the name a", "the token is there twice",
                           ":3:13: tokens", "needs a name and a token"})
    EXPECT_THAT(found, HasSubstr(part));
  EXPECT_THAT(MessageOf([&] { read("just text"); }), HasSubstr("expected a list"));
}

// Each request has one line, whatever its end; its id is the client's, if that can stand in a line.
TEST_F(ServeLimitsTest, LogsEachRequestOnce) {
  std::vector<Json> lines;
  std::mutex mutex;
  serve::ServiceOptions options;
  options.json_log = true;
  options.http.request_seconds = 0.3;
  options.log = [&](const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex);
    lines.push_back(Json::parse(line));
  };
  RunningService running(std::move(options));
  size_t expected = 0;
  const auto next = [&] {
    ++expected;
    EXPECT_TRUE(Eventually([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return lines.size() >= expected;
    }));
    const std::lock_guard<std::mutex> lock(mutex);
    return lines.size() == expected ? lines.back() : Json("more lines than requests");
  };
  httplib::Client client = running.Client();
  const auto post = [&](const Json& body, const std::string& id) {
    return client.Post("/v1/evaluations", {{"X-Request-Id", id}}, body.dump(), "application/json")
        ->get_header_value("X-Request-Id");
  };
  EXPECT_EQ(post(kQuick, "mine-1"), "mine-1");
  Json line = next();
  EXPECT_EQ(line["id"], "mine-1");
  EXPECT_EQ(line["client"], "127.0.0.1");
  EXPECT_EQ(line["problem"], "one");
  EXPECT_EQ(line["verdict"], "correct");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["cause"], "");
  EXPECT_GT(line["seconds"], 0);
  const std::string made = post({{"evaluations", {kQuick, {{"problem", "one"}, {"source", "wrong"}}}}}, "no\x01 id");
  EXPECT_NE(made, "no\x01 id");
  line = next();
  EXPECT_EQ(line["id"], made);
  EXPECT_EQ(line["verdict"], "correct 1, wrong 1");
  post({{"stream", true}, {"evaluations", {kQuick}}}, "s");
  EXPECT_EQ(next()["verdict"], "correct");
  post({{"problem", "one"}, {"source", "break"}}, "b");
  EXPECT_THAT(std::string(next()["cause"]), HasSubstr(": "));
  post({{"problem", "three"}}, "u");
  EXPECT_THAT(std::string(next()["cause"]), testing::StartsWith("unknown_problem: "));
  EXPECT_EQ(client.Get("/no/such")->status, 404);
  EXPECT_EQ(next()["path"], "/no/such");
  const Socket garbage(running.port());
  garbage.Send("garbage\r\n\r\n");
  EXPECT_EQ(next()["status"], 400);
  const Socket slow(running.port());
  slow.Send("G");
  EXPECT_EQ(next()["status"], 408);
  {
    Socket leaving(running.port());
    leaving.Send(PostText(kHeld.dump()));
    ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  }
  EXPECT_EQ(next()["status"], 499);
}

TEST_F(ServeLimitsTest, RefusesLengthsThatCanBeReadInTwoWays) {
  RunningService running;
  const std::string body = kQuick.dump(), length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  for (const std::string& headers :
       {length + length, length + "Content-Length: 0\r\n", length + chunked, chunked + chunked,
        std::string("Transfer-Encoding: identity\r\n"), std::string("Transfer-Encoding: chunked, identity\r\n"),
        std::string("Content-Length: +5\r\n"), std::string("Content-Length: 99999999999999999999\r\n"),
        std::string("Content-Length : 5\r\n"), length + "Transfer-Encoding : chunked\r\n"}) {
    const Socket socket(running.port());
    socket.Send("POST /v1/evaluations HTTP/1.1\r\nHost: here\r\n" + headers + "\r\n" + body +
                "GET /healthz HTTP/1.1\r\n\r\n");
    const std::string answer = socket.ReadAll();
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400") << headers << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << "one answer: " << headers << answer;
  }
  // The body of a GET is not the next request.
  const Socket socket(running.port());
  socket.Send("GET /v1/problems HTTP/1.1\r\nContent-Length: 27\r\n\r\nGET /healthz HTTP/1.1\r\nX: y\r\n\r\n");
  const std::string answer = socket.ReadAll();
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
}

// Lists and objects of many values are refused or read in linear time.
TEST_F(ServeLimitsTest, ReadsLongListsInLinearTime) {
  RunningService running({.queue = 1000});
  const auto seconds = [&](const std::string& body, int status) {
    timespec before = {}, after = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    EXPECT_EQ(running.Client().Post("/v1/evaluations", body, "application/json")->status, status);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return static_cast<double>(after.tv_sec - before.tv_sec) +
           1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  };
  const auto repeated = [](const std::string& begin, const std::string& each, size_t count, const std::string& end) {
    std::string text = begin;
    for (size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + each;
    return text + end;
  };
  std::string keys = "{\"problem\":\"one\"", names = "{\"problem\":\"one\",\"devices\":[\"fast\"";
  for (int i = 0; i < 60'000; ++i) {
    keys += ",\"k" + std::to_string(i) + "\":1";
    names += ",\"d" + std::to_string(i) + "\"";
  }
  EXPECT_LT(seconds(repeated("{\"evaluations\":[", "{}", 900, "]}"), 400), 1);
  EXPECT_LT(seconds(repeated("{\"evaluations\":[", "{}", 200'000, "]}"), 413), 1);
  EXPECT_LT(seconds(repeated("{\"problem\":[", "[]", 30'000, "]}"), 400), 1);
  EXPECT_LT(seconds(repeated("{\"problem\":[", "[]", 500'000, "]}"), 413), 1);
  EXPECT_LT(seconds(keys + "}", 400), 1);
  EXPECT_LT(seconds(names + "]}", 400), 1);
}

// The rules of promtool check metrics: each family has help and type before its samples, counters end in _total.
TEST_F(ServeLimitsTest, MetricsAreAsPrometheusWantsThemFromTheStart) {
  RunningService running;
  std::istringstream lines(running.Client().Get("/metrics")->body);
  std::string family, type;
  std::set<std::string> seen;
  std::map<std::string, int> samples;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, kind, name, rest;
    words >> first;
    if (first == "#") {
      words >> kind >> name >> rest;
      if (kind == "HELP") {
        EXPECT_TRUE(seen.insert(name).second) << name << " twice";
        EXPECT_FALSE(rest.empty()) << line;
        family = name;
      } else {
        EXPECT_EQ(kind, "TYPE");
        EXPECT_EQ(name, family);
        type = rest;
        EXPECT_EQ(type == "counter", name.ends_with("_total")) << line;
      }
      continue;
    }
    EXPECT_TRUE(first.starts_with(family)) << line;
    ++samples[family];
  }
  EXPECT_EQ(samples.size(), seen.size()) << "each family has a value from the start";
  EXPECT_EQ(samples["kgrpo_evaluations_total"], 6) << "three verdicts, two devices";
}

TEST_F(ServeLimitsTest, DrainsWhatIsUnderWay) {
  RunningService running({.workers = 1});
  Answer held;
  std::thread client([&] { held = Post(running.Client(), {{"evaluations", {kHeld, kQuick}}}); });
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  running.AskToStop();
  ASSERT_TRUE(Eventually([&] { return Get(running.Client(), "/healthz").status == 503; }));
  EXPECT_EQ(Post(running.Client(), kQuick).json["error"]["code"], "draining");
  judge().released = true;
  client.join();
  EXPECT_EQ(held.status, 200);
  EXPECT_EQ(held.json["evaluations"].size(), 2U);
  running.Stop();
  EXPECT_EQ(Get(running.Client(), "/healthz").status, 0) << "it no longer listens";
}

TEST_F(ServeLimitsTest, EndsWhereItIsStoppedBeforeItListens) {
  for (int i = 0; i < 20; ++i) {
    RunningService running;
    running.Stop();  // ends the test's wait for it, or hangs
  }
}

TEST_F(ServeLimitsTest, DrainsForALimitedTime) {
  RunningService running({.workers = 1, .drain_seconds = 0.1});
  Answer held;
  std::thread client([&] { held = Post(running.Client(), {{"evaluations", {kHeld, kQuick}}}); });
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  running.Stop();
  client.join();
  EXPECT_EQ(held.status, 503);
  EXPECT_EQ(held.json["error"]["code"], "cancelled");
}

TEST_F(ServeLimitsTest, RefusesWhatIsTooLargeTooDeepOrNoRequest) {
  serve::ServiceOptions options;
  options.http.body_bytes = 1 << 20;
  options.http.header_bytes = 4096;
  RunningService running(std::move(options));
  const auto status = [&](const std::string& request) {
    const Socket socket(running.port());
    socket.Send(request);
    const std::string answer = socket.ReadAll();
    return answer.substr(0, 12) + " " +
           (answer.find("\"message\":\"") == std::string::npos ? ""
                                                               : answer.substr(answer.find("\"message\":\"") + 11, 45));
  };
  // A length that it says, one that it does not say, and 100 MiB that come although nobody wants them.
  EXPECT_EQ(status("POST /v1/evaluations HTTP/1.1\r\nContent-Length: 104857600\r\n\r\n"),
            "HTTP/1.1 413 the request's body is larger than 1 MiB; send");
  const Answer sent = Post(running.Client(), std::string(size_t{100} << 20, 'x'));
  EXPECT_EQ(sent.status, 413);
  std::string chunks = "POST /v1/evaluations HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) chunks += "20000\r\n" + std::string(0x20000, 'x') + "\r\n";
  EXPECT_EQ(status(chunks), "HTTP/1.1 413 the request's body is larger than 1 MiB; send");
  for (const std::string& opening : {std::string("["), std::string("{\"a\":")}) {
    std::string deep;
    for (int i = 0; i < 10000; ++i) deep += opening;
    httplib::Client client = running.Client();
    const httplib::Result result = client.Post("/v1/evaluations", deep, "application/json");
    ASSERT_TRUE(result);
    EXPECT_EQ(Json::parse(result->body)["error"]["message"], "the body: JSON nested deeper than 32 levels");
  }
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(10000, 'y') + "\r\n\r\n"),
            "HTTP/1.1 431 the request's headers take more than 4 KiB\"}}");
  EXPECT_EQ(status("GET /" + std::string(10000, 'y')), "HTTP/1.1 431 the request's headers take more than 4 KiB\"}}");
  EXPECT_EQ(status("garbage\r\n\r\n"), "HTTP/1.1 400 this is not an HTTP request\"}}\n");
  httplib::Client client = running.Client();
  EXPECT_EQ(client.Post("/v1/evaluations", "{\"problem\": ", "application/json")->status, 400);
  EXPECT_EQ(client.Post("/v1/evaluations", "--x\r\n", "multipart/form-data; boundary=x")->status, 415);
  EXPECT_EQ(Post(running.Client(), kQuick).status, 200);
}

TEST_F(ServeLimitsTest, EndsAClientThatSendsAByteNowAndThen) {
  serve::ServiceOptions options;
  options.http.request_seconds = 0.3;
  RunningService running(std::move(options));
  for (const std::string& begin : {std::string("POST /v1/evaluations HTTP/1.1\r\nContent-Length: 10000\r\n\r\n"),
                                   std::string("GET / HTTP/1.1\r\nX: "), std::string("G")}) {
    const Socket slow(running.port());
    slow.Send(begin);
    std::atomic<bool> stop{false};
    std::thread drip([&] {
      while (!stop && slow.Send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    });
    const std::string answer = slow.ReadAll();
    stop = true;
    drip.join();
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 408") << begin;
    EXPECT_NE(answer.find("the request did not arrive whole within"), std::string::npos) << answer;
  }
  EXPECT_EQ(Post(running.Client(), kQuick).status, 200);
}

TEST_F(ServeLimitsTest, RefusesOneConnectionTooMany) {
  serve::ServiceOptions options;
  options.http.connections = 2;
  RunningService running(std::move(options));
  Socket first(running.port());
  Socket second(running.port());
  first.Send("G");
  second.Send("G");
  std::string answer;
  ASSERT_TRUE(Eventually([&] {
    const Socket third(running.port());
    answer = third.ReadAll();
    return !answer.empty();
  }));
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(answer.find("too many connections"), std::string::npos);
  first.Close();
  EXPECT_TRUE(Eventually([&] { return Get(running.Client(), "/healthz").status == 200; }));
}

TEST_F(ServeLimitsTest, AllBodiesTogetherHaveALimit) {
  serve::ServiceOptions options;
  options.http.all_body_bytes = 1 << 20;
  RunningService running(std::move(options));
  const std::string most(800000, ' ');
  const Socket holds(running.port());
  ASSERT_TRUE(holds.Send(PostText(most + kHeld.dump())));
  ASSERT_TRUE(Eventually([] { return judge().held == 1; }));
  const Socket refused(running.port());
  refused.Send(PostText(most + kQuick.dump()));
  const std::string answer = refused.ReadAll();
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 503");
  EXPECT_NE(answer.find("too_many_bytes"), std::string::npos) << answer;
  judge().released = true;
  EXPECT_TRUE(Eventually([&] {
    const httplib::Result again = running.Client().Post("/v1/evaluations", most + kQuick.dump(), "application/json");
    return again && again->status == 200;
  }));
}

TEST_F(ServeLimitsTest, CountsWhatItDoes) {
  RunningService running;
  Post(running.Client(), kQuick);
  Post(running.Client(), {{"problem", "one"}, {"source", "wrong"}});
  Post(running.Client(), {{"problem", "three"}});
  const std::string text = running.Client().Get("/metrics")->body;
  for (const char* line :
       {"kgrpo_evaluations_total{device=\"fast\",verdict=\"correct\"} 1\n",
        "kgrpo_evaluations_total{device=\"fast\",verdict=\"wrong\"} 1\n",
        "kgrpo_requests_total{path=\"/v1/evaluations\",status=\"200\"} 2\n",
        "kgrpo_requests_total{path=\"/v1/evaluations\",status=\"404\"} 1\n", "kgrpo_queue_waiting 0\n",
        "kgrpo_evaluation_seconds_count{device=\"fast\"} 2\n", "# TYPE kgrpo_evaluation_seconds histogram\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace kgrpo::test
