// SPDX-License-Identifier: Apache-2.0
#include "transport/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "transport/test_pair.h"

namespace remora::transport {
namespace {

using test::make_fake_pair;
using test::make_ucx_pair;
using test::Pair;
using test::PairOptions;

constexpr std::uint64_t kPatienceMs = 20'000;

/// Every path that bytes can take on this host.
class ChannelPath : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Pair> make(PairOptions options = {}) {
    if (std::string(GetParam()) == "fake") return make_fake_pair(options);
    if (std::string(GetParam()) == "fake_reordering") {
      options.wire.reorder_seed = 7;
      return make_fake_pair(options);
    }
    auto pair = make_ucx_pair(GetParam(), options);
    EXPECT_TRUE(pair.ok()) << pair.error().text;
    return pair.ok() ? std::move(*pair) : nullptr;
  }
};

TEST_P(ChannelPath, DeliversRecordsOfManySizesInOrder) {
  auto pair = make();
  ASSERT_NE(pair, nullptr);
  pair->start_threads();
  constexpr std::size_t kRecords = 3000;
  std::vector<std::uint32_t> sizes;
  for (std::size_t i = 0; i < kRecords; ++i) {
    sizes.push_back(i % 100 == 99 ? 70'000 : static_cast<std::uint32_t>(8 + 8 * (i % 300)));
    ASSERT_EQ(pair->a->post(sizes.back(), static_cast<unsigned char>(i)), i + 1);
  }
  pair->a->channel.flush();
  ASSERT_EQ(pair->b->endpoint->wait([&] { return pair->b->received() == kRecords; },
                                    Deadline::in_ms(kPatienceMs)),
            WaitOutcome::done);
  for (std::size_t i = 0; i < kRecords; ++i) {
    ASSERT_EQ(pair->b->sequences[i], i + 1);
    ASSERT_EQ(pair->b->records[i].size(), sizes[i]);
    ASSERT_EQ(pair->b->records[i].back(),
              sizes[i] == 8 ? pair->b->records[i].back() : static_cast<std::byte>(i));
  }
  // The last acknowledgement comes before the receiver sleeps, without being asked for.
  EXPECT_EQ(pair->a->endpoint->wait([&] { return pair->a->channel.acknowledged() == kRecords; },
                                    Deadline::in_ms(kPatienceMs)),
            WaitOutcome::done);
}

TEST_P(ChannelPath, KeepsOrderAmongThreadsOfOneSender) {
  auto pair = make();
  ASSERT_NE(pair, nullptr);
  pair->start_threads();
  constexpr int kThreads = 3, kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::uint64_t last = 0;
      for (int i = 0; i < kEach; ++i) {
        const std::uint64_t sequence = pair->a->post(16, static_cast<unsigned char>(t));
        ASSERT_GT(sequence, last);
        last = sequence;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  pair->a->channel.flush();
  ASSERT_EQ(pair->b->endpoint->wait([&] { return pair->b->received() == kThreads * kEach; },
                                    Deadline::in_ms(kPatienceMs)),
            WaitOutcome::done);
  for (std::size_t i = 0; i < pair->b->sequences.size(); ++i) {
    ASSERT_EQ(pair->b->sequences[i], i + 1);
  }
}

TEST_P(ChannelPath, AnswersWhileRecordsFlow) {
  auto pair = make();
  ASSERT_NE(pair, nullptr);
  pair->b->on_record = [&](std::uint64_t, Bytes record) {
    pair->b->post(static_cast<std::uint32_t>(record.size()), 1);
    pair->b->channel.flush();
    return Consumed::yes;
  };
  pair->start_threads();
  for (std::size_t i = 1; i <= 500; ++i) {
    pair->a->post(64, 2);
    pair->a->channel.flush();
    ASSERT_EQ(pair->a->endpoint->wait([&] { return pair->a->received() == i; },
                                      Deadline::in_ms(kPatienceMs)),
              WaitOutcome::done);
  }
}

TEST_P(ChannelPath, FlowControlBoundsWhatIsUnacknowledged) {
  PairOptions options;
  options.channel.unacknowledged_limit = 4096;
  options.channel.inbound_limit = 8192;
  auto pair = make(options);
  ASSERT_NE(pair, nullptr);
  pair->start_threads();
  for (int i = 0; i < 1000; ++i) ASSERT_NE(pair->a->post(512, 3), 0u);
  pair->a->channel.flush();
  ASSERT_EQ(pair->b->endpoint->wait([&] { return pair->b->received() == 1000; },
                                    Deadline::in_ms(kPatienceMs)),
            WaitOutcome::done);
  EXPECT_GT(pair->a->endpoint->counters().stalls.load(), 0u);
  EXPECT_TRUE(pair->b->failures.empty());
}

INSTANTIATE_TEST_SUITE_P(Paths, ChannelPath,
                         testing::Values("fake", "fake_reordering", "posix,cma", "tcp"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ',', '_');
                           return name;
                         });

TEST(Channel, SendsOneRecordInOneMessageAndManyInFew) {
  auto pair = make_fake_pair();
  pair->a->post(64, 1);
  EXPECT_EQ(pair->a->endpoint->counters().messages_sent.load(), 1u);
  // Nobody acknowledges: what passes the messages in flight is gathered.
  for (int i = 0; i < 1000; ++i) pair->a->post(64, 1);
  const std::uint64_t records_per_batch = (16384 - 24) / 64;
  EXPECT_LE(pair->a->endpoint->counters().messages_sent.load(), 4 + 1000 / records_per_batch + 1);
  while (pair->b->endpoint->progress()) {
  }
  while (pair->a->endpoint->progress() || pair->b->endpoint->progress()) {
  }
  EXPECT_EQ(pair->b->received(), 1001u);
}

TEST(Channel, ARecordThatWaitsHoldsBackAllAfterIt) {
  auto pair = make_fake_pair();
  bool ready = false;
  std::vector<std::uint64_t> seen;
  pair->b->on_record = [&](std::uint64_t sequence, Bytes) {
    if (sequence == 2 && !ready) return Consumed::later;
    seen.push_back(sequence);
    return Consumed::yes;
  };
  for (int i = 0; i < 3; ++i) pair->a->post(16, 0);
  pair->b->endpoint->progress();
  EXPECT_THAT(seen, testing::ElementsAre(1));
  ready = true;
  pair->b->endpoint->progress();
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3));
}

TEST(Channel, AnUncommittedRecordWasNeverThere) {
  auto pair = make_fake_pair();
  { auto posting = pair->a->channel.begin(64); }
  EXPECT_EQ(pair->a->post(16, 5), 1u);
  pair->b->endpoint->progress();
  EXPECT_THAT(pair->b->sequences, testing::ElementsAre(1));
}

TEST(Channel, ACutWireFailsBothEndsAndWakesWaiters) {
  auto pair = make_fake_pair();
  pair->start_threads();
  std::thread cutter([&] { pair->a_wire->cut(); });
  EXPECT_EQ(pair->a->endpoint->wait([] { return false; }, Deadline::in_ms(kPatienceMs)),
            WaitOutcome::failed);
  EXPECT_EQ(pair->b->endpoint->wait([] { return false; }, Deadline::in_ms(kPatienceMs)),
            WaitOutcome::failed);
  cutter.join();
  EXPECT_FALSE(pair->a->channel.begin(16));
  EXPECT_EQ(pair->a->endpoint->failure().kind, ErrorKind::unavailable);
}

TEST(Channel, FailureEndsAStalledSender) {
  PairOptions options;
  options.channel.unacknowledged_limit = 1024;
  auto pair = make_fake_pair(options);
  pair->a->endpoint->start_progress_thread();  // b does not consume
  std::thread cutter([&] {
    while (pair->a->endpoint->counters().stalls.load() == 0) std::this_thread::yield();
    pair->a_wire->cut();
  });
  int posted = 0;
  while (pair->a->post(512, 1) != 0) ASSERT_LT(++posted, 10);
  cutter.join();
}

/// Bytes as a hostile peer would send them: the end fails with one reason, and nothing is consumed.
class Malformed : public testing::Test {
 protected:
  struct Header {
    std::uint64_t first, consumed;
    std::uint32_t records, reserved;
  };
  static std::vector<std::byte> message(Header header, std::vector<std::uint32_t> words = {}) {
    std::vector<std::byte> bytes(sizeof header + words.size() * 4);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!words.empty()) std::memcpy(bytes.data() + sizeof header, words.data(), words.size() * 4);
    return bytes;
  }
  void expect_violation(const std::vector<std::byte>& bytes) {
    auto pair = make_fake_pair();
    pair->a_wire->inject(bytes);
    pair->a->endpoint->progress();
    ASSERT_TRUE(pair->a->endpoint->has_failed());
    EXPECT_EQ(pair->a->endpoint->failure().kind, ErrorKind::invalid_input);
    EXPECT_EQ(pair->a->failures.size(), 1u);
    EXPECT_EQ(pair->a->received(), 0u);
  }
};

TEST_F(Malformed, NoHeader) { expect_violation(std::vector<std::byte>(23)); }
TEST_F(Malformed, ReservedBits) { expect_violation(message({0, 0, 0, 1})); }
TEST_F(Malformed, AcknowledgesTheFuture) { expect_violation(message({0, 1, 0, 0})); }
TEST_F(Malformed, AcknowledgementWithBody) { expect_violation(message({0, 0, 0, 0}, {8, 0})); }
TEST_F(Malformed, SequenceZero) { expect_violation(message({0, 0, 1, 0}, {8, 0})); }
TEST_F(Malformed, MoreRecordsThanBytes) { expect_violation(message({1, 0, 2, 0}, {8, 0})); }
TEST_F(Malformed, RecordOfSizeZero) { expect_violation(message({1, 0, 1, 0}, {0, 0})); }
TEST_F(Malformed, RecordOfOddSize) { expect_violation(message({1, 0, 1, 0}, {12, 0, 0, 0})); }
TEST_F(Malformed, RecordPastTheEnd) { expect_violation(message({1, 0, 1, 0}, {16, 0})); }

TEST_F(Malformed, TheSameRecordTwice) {
  auto pair = make_fake_pair();
  const auto bytes = message({1, 0, 1, 0}, {8, 0});
  pair->a_wire->inject(bytes);
  pair->a_wire->inject(bytes);
  pair->a->endpoint->progress();
  EXPECT_TRUE(pair->a->endpoint->has_failed());
}

TEST_F(Malformed, AFloodPassesTheInboundLimit) {
  PairOptions options;
  options.channel.inbound_limit = 1000;
  auto pair = make_fake_pair(options);
  pair->a->on_record = [](std::uint64_t, Bytes) { return Consumed::later; };
  std::vector<std::uint32_t> words(200);
  words[0] = 800;
  pair->a_wire->inject(message({1, 0, 1, 0}, words));
  pair->a->endpoint->progress();
  EXPECT_FALSE(pair->a->endpoint->has_failed());
  pair->a_wire->inject(message({2, 0, 1, 0}, words));
  pair->a->endpoint->progress();
  EXPECT_TRUE(pair->a->endpoint->has_failed());
}

}  // namespace
}  // namespace remora::transport
