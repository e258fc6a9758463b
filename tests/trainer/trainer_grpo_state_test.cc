// trainer_grpo as a whole: its state, saved and loaded.
#include "grpo_bench.h"

#include "test.h"

namespace kgrpo::grpo {
namespace {

using kgrpo::testing::BigramPolicy;
using kgrpo::testing::MemoryStream;

TEST(TrainerGrpo, ResumedRunsGoOnBitForBit) {
  for (bool bfloat16 : {false, true}) {
    SCOPED_TRACE(bfloat16);
    const json options = {
        {"learning_rate", 1e-2}, {"lr_scheduler_type", "cosine"}, {"warmup_steps", 3}, {"shuffle", true}};
    Bench unbroken(options, bfloat16), first(options, bfloat16), second(options, bfloat16);
    std::vector<std::unique_ptr<Batch>> batches;
    for (uint64_t i = 0; i < 6; ++i) batches.push_back(std::make_unique<Batch>(unbroken.policy, 20 + i, 5));
    for (const auto& batch : batches) unbroken.Update(*batch);
    for (size_t i = 0; i < 3; ++i) first.Update(*batches[i]);
    MemoryStream stream;
    first.trainer.SaveState(stream.writer());
    for (size_t p = 0; p < 2; ++p) second.policy.SetValues(p, first.policy.Values(p));
    second.trainer.LoadState(stream.reader());
    for (size_t i = 3; i < 6; ++i) second.Update(*batches[i]);
    EXPECT_EQ(second.Values(), unbroken.Values());
    EXPECT_EQ(second.sink.step, unbroken.sink.step);
    MemoryStream a, b;
    unbroken.trainer.SaveState(a.writer());
    second.trainer.SaveState(b.writer());
    EXPECT_EQ(a.bytes, b.bytes);
  }
}

// What `resume` may change: a state goes on under other options, and under a longer stage.
TEST(TrainerGrpo, AStateGoesOnUnderOtherOptions) {
  const json before = {{"learning_rate", 1e-2}, {"max_grad_norm", 0.0}},
             after = {{"learning_rate", 1e-3}, {"beta", 0.0}};
  Bench first(before), second(after), unchanged(before);
  std::vector<std::unique_ptr<Batch>> batches;
  for (uint64_t i = 0; i < 2; ++i) batches.push_back(std::make_unique<Batch>(first.policy, 30 + i, 5));
  first.Update(*batches[0]);
  for (Bench* bench : {&second, &unchanged}) {
    MemoryStream stream;
    first.trainer.SaveState(stream.writer());
    for (size_t p = 0; p < 2; ++p) bench->policy.SetValues(p, first.policy.Values(p));
    bench->trainer.LoadState(stream.reader());
    bench->Update(*batches[1]);
  }
  EXPECT_EQ(second.sink.step.at("learning_rate"), 1e-3);
  EXPECT_EQ(second.sink.step.at("num_tokens"), unchanged.sink.step.at("num_tokens"));
  EXPECT_NE(second.Values(), unchanged.Values());
}

// The learning rate is a function of the position and of the stage's steps: with more of those it is another from here
// on.
TEST(TrainerGrpo, AStateGoesOnInALongerStage) {
  for (const char* schedule : {"constant", "cosine"}) {
    SCOPED_TRACE(schedule);
    const json options = {{"learning_rate", 1e-2}, {"lr_scheduler_type", schedule}};
    Bench whole(options, false, 8), first(options, false, 4), second(options, false, 8);
    std::vector<std::unique_ptr<Batch>> batches;
    for (uint64_t i = 0; i < 5; ++i) batches.push_back(std::make_unique<Batch>(whole.policy, 40 + i, 5));
    for (const auto& batch : batches) whole.Update(*batch);
    for (size_t i = 0; i < 4; ++i) first.Update(*batches[i]);
    MemoryStream stream;
    first.trainer.SaveState(stream.writer());
    for (size_t p = 0; p < 2; ++p) second.policy.SetValues(p, first.policy.Values(p));
    second.trainer.LoadState(stream.reader());
    second.Update(*batches[4]);
    EXPECT_EQ(second.sink.step.at("learning_rate"), whole.sink.step.at("learning_rate"));
    if (std::string(schedule) == "constant") {
      EXPECT_EQ(second.Values(), whole.Values());
    }
  }
}

TEST(TrainerGrpo, AStateBeforeTheFirstUpdateCanBeSaved) {
  Bench bench, other;
  MemoryStream stream;
  bench.trainer.SaveState(stream.writer());
  other.trainer.LoadState(stream.reader());
  const Batch batch(bench.policy, 21, 3);
  bench.Update(batch);
  other.Update(batch);
  EXPECT_EQ(bench.Values(), other.Values());
}

TEST(TrainerGrpo, DamagedStatesAreRefusedAndChangeNothing) {
  Bench bench, loader, reference;
  const Batch batch(bench.policy, 22, 4);
  bench.Update(batch);
  MemoryStream good;
  bench.trainer.SaveState(good.writer());
  for (size_t p = 0; p < 2; ++p) loader.policy.SetValues(p, bench.policy.Values(p));

  auto load = [&](const std::string& bytes) {
    MemoryStream stream;
    stream.bytes = bytes;
    return ErrorOf([&] { loader.trainer.LoadState(stream.reader()); });
  };
  const std::string head = "the saved trainer state cannot be used: ";
  for (size_t size = 0; size < good.bytes.size(); size += 97)
    EXPECT_EQ(load(good.bytes.substr(0, size)), head + "it is cut short");
  EXPECT_EQ(load("PK" + good.bytes), head + "it does not begin as one");
  EXPECT_EQ(load(good.bytes + "x"), head + "it is damaged (more follows its end)");
  std::string version = good.bytes, moment = good.bytes, trainer = good.bytes;
  version[8] = 9;
  EXPECT_EQ(load(version), head + "it has version 9 of the format, this program reads version 1");
  moment[good.bytes.size() - 20] ^= 4;
  EXPECT_EQ(load(moment), head + "it is damaged (its checksum does not match)");
  trainer.replace(trainer.find("trainer_grpo"), 12, "trainer_xxxx");
  EXPECT_EQ(load(trainer), head + "it was written by trainer_xxxx, not by trainer_grpo");
  for (size_t i = 0; i < good.bytes.size(); i += 13) {  // no byte can change unnoticed
    std::string changed = good.bytes;
    changed[i] ^= 1;
    EXPECT_THAT(load(changed), HasSubstr(head)) << i;
  }

  // After all these failures the trainer is as new.
  for (size_t p = 0; p < 2; ++p) loader.policy.SetValues(p, reference.policy.Values(p));
  loader.Update(batch);
  reference.Update(batch);
  EXPECT_EQ(loader.Values(), reference.Values());
}

TEST(TrainerGrpo, StatesOfAnotherModelAreRefused) {
  Bench bench, other_values, narrow({}, true);
  const Batch batch(bench.policy, 23, 4);
  bench.Update(batch);
  MemoryStream stream;
  bench.trainer.SaveState(stream.writer());
  const std::string head = "the saved trainer state cannot be used: ";
  EXPECT_EQ(ErrorOf([&] { other_values.trainer.LoadState(stream.reader()); }),
            head + "parameter table has other values than when it was saved; load the policy of the same checkpoint");
  EXPECT_EQ(ErrorOf([&] { narrow.trainer.LoadState(stream.reader()); }),
            head + "it is of another model: it has table float32[11, 11] where this one has table bfloat16[11, 11]");
  BigramPolicy larger(kVocabulary + 1);
  GrpoTrainer trainer(bench.host.get(), bench.trainer.options(), nullptr);
  trainer.Begin(&BigramPolicy::Api(), larger.get(), {sizeof(kgrpo_trainer_plan), 10, 1.0, 6, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(ErrorOf([&] { trainer.LoadState(stream.reader()); }),
            head + "it is of another model: it has table float32[11, 11] where this one has table float32[12, 12]");
}

TEST(TrainerGrpo, AFullDiskIsAnErrorOfSaving) {
  Bench bench;
  MemoryStream stream;
  stream.fails_after = 100;
  EXPECT_EQ(ErrorOf([&] { bench.trainer.SaveState(stream.writer()); }, KGRPO_ERROR_UNAVAILABLE), "disk full");
}

}  // namespace
}  // namespace kgrpo::grpo
