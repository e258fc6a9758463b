// kgrpo_host_interface as a plugin in C sees it: look-up, errors, declared metrics, options, the stop and its deadline.
#include <kgrpo/sdk/host.h>

#include "base/cancel.h"
#include "in_process.h"
#include "test.h"

namespace kgrpo {
namespace {

using test::MessageOf;

class HostInterfaceTest : public testing::Test {
 protected:
  HostInterfaceTest() { ClearCancel(); }
  ~HostInterfaceTest() override { ClearCancel(); }

  HostServices services_{{}};
  const kgrpo_host* host_ = services_.ForInstance("x");
  const kgrpo_host_interface* api_ = static_cast<const kgrpo_host_interface*>(
      host_->get_interface(host_->context, KGRPO_LITERAL(KGRPO_HOST_INTERFACE)));

  void Declare(std::string_view name, kgrpo_metric_combination combination) {
    Host(host_).Declare({.name = name, .label = "", .group = "", .combination = combination});
  }
};

TEST_F(HostInterfaceTest, IsFoundByItsIdAlone) {
  ASSERT_NE(api_, nullptr);
  EXPECT_EQ(api_->struct_size, sizeof(kgrpo_host_interface));
  for (const char* id : {"kgrpo.host/2", "kgrpo.host", "kgrpo.collective/1", ""})
    EXPECT_EQ(host_->get_interface(host_->context, Str(id)), nullptr) << id;
}

TEST_F(HostInterfaceTest, HasNoHole) {
  const auto* functions = reinterpret_cast<void* const*>(api_) + 1;
  for (size_t i = 0; i < sizeof(kgrpo_host_interface) / sizeof(void*) - 1; ++i) EXPECT_NE(functions[i], nullptr) << i;
}

TEST_F(HostInterfaceTest, SaysWhoCallsAndWhereThePluginLies) {
  const Host host(services_.ForInstance("y", "reward_y", "/opt/plugins"));
  EXPECT_EQ(host.PluginDirectory(), "/opt/plugins");
  EXPECT_EQ(Host(host_).PluginDirectory(), "");
  EXPECT_EQ(host.HostVersion(), KGRPO_VERSION);
}

TEST_F(HostInterfaceTest, MakesErrorsWithACopyOfTheMessage) {
  std::string message = "options.weight: too large";
  kgrpo_error* error = api_->make_error(host_->context, KGRPO_ERROR_INVALID, Str(message));
  message.assign(message.size(), '?');
  EXPECT_EQ(error->code, KGRPO_ERROR_INVALID);
  EXPECT_EQ(error->struct_size, sizeof(kgrpo_error));
  EXPECT_EQ(View(error->message), "options.weight: too large");
  error->release(error);
}

// ---- metrics ------------------------------------------------------------------------------------

TEST_F(HostInterfaceTest, PointsAreCombinedAsDeclared) {
  const Host host(host_);
  Declare("mean", KGRPO_METRIC_MEAN);
  Declare("spent", KGRPO_METRIC_SUM);
  Declare("peak", KGRPO_METRIC_MAXIMUM);
  for (const char* name : {"mean", "spent", "peak", "undeclared"}) {
    for (const double value : {1.0, 6.0, 2.0}) host.Metric(name, value);
  }
  const auto metrics = services_.TakeMetrics();
  EXPECT_EQ(metrics.at("mean"), 3.0);
  EXPECT_EQ(metrics.at("spent"), 9.0);
  EXPECT_EQ(metrics.at("peak"), 6.0);
  EXPECT_EQ(metrics.at("undeclared"), 3.0);
}

TEST_F(HostInterfaceTest, AFamilyDeclaresAllThatBeginsWithIt) {
  const Host host(host_);
  Declare("seconds/", KGRPO_METRIC_SUM);
  Declare("seconds/compile/", KGRPO_METRIC_MAXIMUM);
  Declare("seconds/compile/nvcc", KGRPO_METRIC_MEAN);
  for (const char* name : {"seconds/judge", "seconds/compile/host", "seconds/compile/nvcc", "second/judge"}) {
    host.Metric(name, 1);
    host.Metric(name, 3);
  }
  const auto metrics = services_.TakeMetrics();
  EXPECT_EQ(metrics.at("seconds/judge"), 4.0);
  EXPECT_EQ(metrics.at("seconds/compile/host"), 3.0) << "the longest family";
  EXPECT_EQ(metrics.at("seconds/compile/nvcc"), 2.0) << "the whole name before a family";
  EXPECT_EQ(metrics.at("second/judge"), 2.0) << "no family's";
}

TEST_F(HostInterfaceTest, ADeclarationIsFoundAsAnyOfItsPlayersPushedIt) {
  const Host host(host_);
  host.Declare({.name = "registers", .label = "registers a thread", .group = "Machine code"});
  host.Declare({.name = "stall.", .label = "stalled for", .group = "", .kind = KGRPO_METRIC_FRACTION});
  const MetricRegistry& registry = services_.metrics();
  ASSERT_NE(registry.Find("registers"), nullptr);
  EXPECT_EQ(registry.Find("registers of softmax_kernel"), registry.Find("registers"));
  EXPECT_EQ(registry.Find("stall.barrier")->kind, KGRPO_METRIC_FRACTION);
  EXPECT_TRUE(registry.Find("stall.barrier")->IsFamily());
  EXPECT_EQ(registry.Find("stall."), registry.Find("stall.barrier"));
  EXPECT_EQ(registry.Find("stall"), nullptr);
  EXPECT_EQ(registry.Find(""), nullptr);
}

TEST_F(HostInterfaceTest, DeclaringAgainReplacesInPlace) {
  const Host host(host_);
  host.Declare({.name = "a", .label = "first", .group = ""});
  host.Declare({.name = "b", .label = "second", .group = ""});
  const DeclaredMetric* a = services_.metrics().Find("a");
  host.Declare({.name = "a", .label = "changed", .group = ""});
  EXPECT_EQ(services_.metrics().Find("a"), a);
  EXPECT_EQ(a->label, "changed");
  EXPECT_LT(a->order, services_.metrics().Find("b")->order);
}

TEST_F(HostInterfaceTest, DeclarationsOfAllInstancesAreListedInOrder) {
  const Host first(host_), second(services_.ForInstance("y"));
  first.Declare({.name = "b", .label = "bytes", .group = "Memory", .unit = "B"});
  second.Declare({.name = "a", .label = "atoms", .group = ""});
  std::string listed;
  second.ForEachDeclaration([&](const kgrpo_metric_declaration& declaration) {
    listed += Copy(declaration.name) + " " + Copy(declaration.label) + " " + Copy(declaration.unit) + ";";
  });
  EXPECT_EQ(listed, "b bytes B;a atoms ;");
}

TEST_F(HostInterfaceTest, BadDeclarationsAreRefused) {
  const auto refusal = [&](const std::function<void(kgrpo_metric_declaration&)>& spoil) {
    kgrpo_metric_declaration declaration{};
    declaration.struct_size = sizeof declaration;
    declaration.name = Str("m");
    spoil(declaration);
    return MessageOf([&] { Check(api_->declare_metric(host_->context, &declaration)); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "nothing thrown");
  EXPECT_EQ(refusal([](auto& d) { d.name = {}; }), "the declaration of metric \"\": it has no name");
  EXPECT_EQ(refusal([](auto& d) { d.kind = 7; }), "the declaration of metric \"m\": unknown kind 7");
  EXPECT_EQ(refusal([](auto& d) { d.direction = 3; }), "the declaration of metric \"m\": unknown direction 3");
  EXPECT_EQ(refusal([](auto& d) { d.combination = 3; }), "the declaration of metric \"m\": unknown combination 3");
  EXPECT_EQ(refusal([](auto& d) { d.struct_size = 8; }), "the declaration of metric \"m\": struct_size is too small");
}

// ---- options ------------------------------------------------------------------------------------

class OptionsTest : public HostInterfaceTest {
 protected:
  static constexpr const char* kOptions =
      R"({"weight": 1.5, "count": 3, "big": 18446744073709551615, "on": true, "name": "caf\u00e9",
          "weights": [0.5, 2], "nested": {"deep": [{"x": -1}]}, "none": null, "a.b": 1})";

  const kgrpo_options_interface& Options() {
    return *static_cast<const kgrpo_options_interface*>(
        host_->get_interface(host_->context, KGRPO_LITERAL(KGRPO_OPTIONS_INTERFACE)));
  }
  double Number(const char* path, double otherwise = -7) {
    Check(Options().number(host_->context, Str(kOptions), Str(path), &otherwise));
    return otherwise;
  }
  int64_t Integer(const char* path) {
    int64_t value = -7;
    Check(Options().integer(host_->context, Str(kOptions), Str(path), &value));
    return value;
  }
};

TEST_F(OptionsTest, AreReadByTheirPath) {
  EXPECT_EQ(Number("weight"), 1.5);
  EXPECT_EQ(Number("count"), 3);
  EXPECT_EQ(Number("weights.1"), 2);
  EXPECT_EQ(Integer("count"), 3);
  EXPECT_EQ(Integer("nested.deep.0.x"), -1);
  int32_t on = -7;
  Check(Options().flag(host_->context, Str(kOptions), Str("on"), &on));
  EXPECT_EQ(on, 1);
  std::string name;
  Check(Options().text(host_->context, Str(kOptions), Str("name"), {&name, [](void* context, kgrpo_str text) {
                                                                      *static_cast<std::string*>(context) += View(text);
                                                                    }}));
  EXPECT_EQ(name, "caf\xc3\xa9");
  size_t count = 0;
  Check(Options().count(host_->context, Str(kOptions), Str("weights"), &count));
  EXPECT_EQ(count, 2U);
  Check(Options().count(host_->context, Str(kOptions), Str("nested"), &count));
  EXPECT_EQ(count, 1U);
}

TEST_F(OptionsTest, OfAnotherTypeAreRefusedAndLeaveTheOutputAsItWas) {
  double number = -7;
  kgrpo_error* error = Options().number(host_->context, Str(kOptions), Str("name"), &number);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, KGRPO_ERROR_INVALID);
  EXPECT_EQ(View(error->message), "options.name: expected a number, got string");
  error->release(error);
  EXPECT_EQ(number, -7);
  EXPECT_EQ(MessageOf([&] { Integer("weight"); }), "options.weight: expected an integer, got number");
  EXPECT_EQ(MessageOf([&] { Integer("big"); }), "options.big: 18446744073709551615 is above 2^63 - 1");
  EXPECT_EQ(MessageOf([&] { Number("none"); }), "options.none: expected a number, got null");
}

TEST_F(OptionsTest, ThatAreAbsentAreNotFound) {
  for (const char* path :
       {"nothing", "weights.2", "weights.-1", "weights.x", "weight.0", "nested.deep.0.y", "", "a.b"}) {
    double number = -7;
    kgrpo_error* error = Options().number(host_->context, Str(kOptions), Str(path), &number);
    ASSERT_NE(error, nullptr) << path;
    EXPECT_EQ(error->code, KGRPO_ERROR_NOT_FOUND) << path;
    EXPECT_EQ(Copy(error->message), "options." + std::string(path) + " is not there");
    error->release(error);
    EXPECT_EQ(number, -7);
  }
  double number = 0;
  kgrpo_error* error = Options().number(host_->context, Str("{\"a\": "), Str("a"), &number);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(View(error->message), "the options are no JSON");
  error->release(error);
}

// ---- the stop and its deadline ------------------------------------------------------------------

TEST_F(HostInterfaceTest, TheDeadlineAsksToStop) {
  SetDeadline(3600);
  EXPECT_GT(SecondsToDeadline(), 3500);
  EXPECT_EQ(api_->cancelled(host_->context), 0);
  EXPECT_FALSE(CancelRequested());
  SetDeadline(0.02);
  while (SecondsToDeadline() > 0) std::this_thread::yield();
  EXPECT_EQ(api_->cancelled(host_->context), 1);
  EXPECT_STREQ(StopWords(), "stopped at the time limit");
  RequestCancel();
  EXPECT_STREQ(StopWords(), "stopped by the user");
}

TEST_F(HostInterfaceTest, APluginMayAskForTheStop) {
  api_->request_stop(host_->context, Str("the loss is flat"));
  EXPECT_TRUE(CancelRequested());
}

}  // namespace
}  // namespace kgrpo
