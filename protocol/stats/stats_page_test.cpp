// SPDX-License-Identifier: Apache-2.0
#include "protocol/stats/stats_page.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

namespace remora::protocol {
namespace {

class StatsPageTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/remora-stats-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
    path_ = stats_path(directory_, 4711);
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }

  std::string directory_;
  std::string path_;
};

TEST_F(StatsPageTest, PathNamesTheProcess) { EXPECT_EQ(path_, directory_ + "/4711.stats"); }

TEST_F(StatsPageTest, NumbersOutliveAProcessThatIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto page = StatsPage::create(path_);
    if (!page.ok()) ::_exit(1);
    count((*page)->of(CallId::cuLaunchKernel).posted, 10'000);
    count((*page)->of(CallId::cuMemGetInfo_v2).awaited);
    count((*page)->of(CallId::cuMemGetInfo_v2).waited_ns, 1'500);
    count((*page)->totals.round_trips, 3);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  auto page = StatsPage::open(path_);
  ASSERT_TRUE(page.ok()) << page.error().text;
  const StatsLayout& stats = **page;
  EXPECT_EQ(read(stats.of(CallId::cuLaunchKernel).posted), 10'000u);
  EXPECT_EQ(read(stats.of(CallId::cuMemGetInfo_v2).waited_ns), 1'500u);
  EXPECT_EQ(read(stats.totals.round_trips), 3u);
  const CallSums sums = sum_of_calls(stats);
  EXPECT_EQ(sums.posted, 10'000u);
  EXPECT_EQ(sums.awaited, 1u);
  EXPECT_EQ(sums.local, 0u);
}

TEST_F(StatsPageTest, ThreadsCountWithoutLoss) {
  auto page = StatsPage::create_anonymous();
  ASSERT_TRUE(page.ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) count((*page)->of(CallId::cuStreamQuery).local);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read((*page)->of(CallId::cuStreamQuery).local), 40'000u);
}

TEST_F(StatsPageTest, APidUsedTwiceStartsFromZero) {
  {
    auto page = StatsPage::create(path_);
    ASSERT_TRUE(page.ok());
    count((*page)->totals.stalls, 9);
  }
  auto page = StatsPage::create(path_);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(read((*page)->totals.stalls), 0u);
}

TEST_F(StatsPageTest, RefusesWhatIsNoPage) {
  EXPECT_EQ(StatsPage::open(path_).error().kind, ErrorKind::system);
  std::ofstream(path_) << "short";
  EXPECT_EQ(StatsPage::open(path_).error().kind, ErrorKind::invalid_input);
  std::ofstream(path_) << std::string(sizeof(StatsLayout), 'x');
  EXPECT_EQ(StatsPage::open(path_).error().kind, ErrorKind::invalid_input);
}

TEST_F(StatsPageTest, RefusesADirectoryThatIsNotThere) {
  EXPECT_EQ(StatsPage::create(directory_ + "/none/1.stats").error().kind, ErrorKind::system);
}

}  // namespace
}  // namespace remora::protocol
