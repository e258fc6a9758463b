// A process's rank, from the variables that launchers set.
#include "base/launch.h"

#include "test.h"

namespace kgrpo {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> Read(const Variables& variables) {
  return ReadLaunch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

std::string Refusal(const Variables& variables) {
  return test::MessageOf([&] { Read(variables); }, KGRPO_ERROR_INVALID, "nothing was thrown");
}

TEST(Launch, AProcessAloneIsNoRank) {
  EXPECT_FALSE(Read({}));
  EXPECT_FALSE(Read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  // A batch script's own process, before srun.
  EXPECT_FALSE(Read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "12"}}));
}

TEST(Launch, Torchrun) {
  Variables variables = {{"RANK", "5"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"MASTER_ADDR", "node01"},
                         {"MASTER_PORT", "29500"}};
  auto launch = Read(variables);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->rank, 5U);
  EXPECT_EQ(launch->size, 8U);
  EXPECT_EQ(launch->local_rank, 1U);
  EXPECT_EQ(launch->local_size, 4U);
  EXPECT_EQ(launch->address, "node01");
  EXPECT_EQ(launch->port, 29500);
  EXPECT_FALSE(launch->hosted);
  const std::string run = launch->run;
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  variables["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_TRUE(Read(variables)->hosted);
  EXPECT_NE(Read(variables)->run, run) << "a restarted run must not read the words of the one before";
}

TEST(Launch, Slurm) {
  Variables variables = {{"SLURM_PROCID", "9"},
                         {"SLURM_STEP_NUM_TASKS", "16"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "8(x2)"},
                         {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                         {"SLURM_JOB_ID", "4294967000"},
                         {"SLURM_STEP_ID", "0"}};
  const auto launch = Read(variables);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->by, "srun");
  EXPECT_EQ(launch->rank, 9U);
  EXPECT_EQ(launch->size, 16U);
  EXPECT_EQ(launch->local_size, 8U);
  EXPECT_EQ(launch->address, "gpu07");
  EXPECT_GE(launch->port, 20000);
  EXPECT_LT(launch->port, 32000);
  variables["SLURM_STEP_TASKS_PER_NODE"] = "4(x3),3,1";
  for (const auto& [node, tasks] : {std::pair("0", 4U), {"2", 4U}, {"3", 3U}, {"4", 1U}}) {
    variables["SLURM_NODEID"] = node;
    EXPECT_EQ(Read(variables)->local_size, tasks) << node;
  }
  variables["PMI_RANK"] = "9";  // srun --mpi=pmi2 sets these too, and no local size
  variables["PMI_SIZE"] = "16";
  EXPECT_EQ(Read(variables)->address, "gpu07");
}

TEST(Launch, Mpirun) {
  Variables variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
  EXPECT_EQ(Read(variables)->address, "127.0.0.1");
  EXPECT_EQ(Read(variables)->port, Read(variables)->port) << "all ranks of a machine must agree";
  variables["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_THAT(Refusal(variables), HasSubstr("MASTER_ADDR"));
  variables["MASTER_ADDR"] = "node01";
  EXPECT_EQ(Read(variables)->address, "node01");
  EXPECT_EQ(Read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}})->rank, 1U);
}

TEST(Launch, SenselessVariablesAreNamed) {
  const Variables good = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  const auto with = [&](const char* name, const char* value) {
    Variables variables = good;
    variables[name] = value;
    return Refusal(variables);
  };
  EXPECT_THAT(with("RANK", "two"), HasSubstr("RANK is \"two\""));
  EXPECT_THAT(with("RANK", "-1"), HasSubstr("RANK"));
  EXPECT_THAT(with("RANK", "2"), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(with("WORLD_SIZE", "99999999999"), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(with("MASTER_PORT", "70000"), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(with("MASTER_ADDR", ""), HasSubstr("MASTER_ADDR is not"));
}

TEST(Launch, TheFirstHostOfASlurmList) {
  EXPECT_EQ(FirstHost("login1"), "login1");
  EXPECT_EQ(FirstHost("a,b"), "a");
  EXPECT_EQ(FirstHost("node[07-12,20],login1"), "node07");
  EXPECT_EQ(FirstHost("rack[3]-node"), "rack3-node");
  EXPECT_EQ(FirstHost("n[1,3]x,m"), "n1x");
  EXPECT_EQ(FirstHost(""), "");
  EXPECT_EQ(FirstHost("n[1"), "");
}

}  // namespace
}  // namespace kgrpo
