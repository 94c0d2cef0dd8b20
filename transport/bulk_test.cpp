// SPDX-License-Identifier: Apache-2.0
#include "transport/bulk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "transport/test_pair.h"

namespace remora::transport {
namespace {

using test::make_fake_pair;
using test::make_ucx_pair;
using test::Pair;
using test::PairOptions;

constexpr std::uint64_t kPatienceMs = 30'000;

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// A Done that remembers.
struct Outcome {
  std::atomic<int> calls{0};
  std::optional<Result<>> result;
  Bulk::Done done() {
    return [this](Result<> given) {
      result = std::move(given);
      ++calls;
    };
  }
};

class BulkPath : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Pair> make(PairOptions options = {}) {
    if (std::string(GetParam()) == "fake") return make_fake_pair(options);
    auto pair = make_ucx_pair(GetParam(), options);
    EXPECT_TRUE(pair.ok()) << pair.error().text;
    return pair.ok() ? std::move(*pair) : nullptr;
  }
};

TEST_P(BulkPath, MovesBytesOfManySizes) {
  auto pair = make();
  ASSERT_NE(pair, nullptr);
  pair->start_threads();
  std::uint64_t transfer = 1;
  for (const std::size_t size :
       {1ul, 4096ul, (1ul << 20) - 1, 1ul << 20, (1ul << 20) + 1, (20ul << 20) + 12345}) {
    const auto source = random_bytes(size, static_cast<unsigned>(size));
    std::vector<std::byte> destination(size);
    Outcome sent, landed;
    pair->a->bulk.send(transfer, source, sent.done());
    pair->b->bulk.accept_all(transfer, destination, landed.done());
    ASSERT_EQ(pair->b->endpoint->wait([&] { return landed.calls && sent.calls; },
                                      Deadline::in_ms(kPatienceMs)),
              WaitOutcome::done)
        << size;
    ASSERT_TRUE(landed.result->ok() && sent.result->ok());
    ASSERT_EQ(destination, source);
    ++transfer;
  }
}

TEST_P(BulkPath, TheReceiverSetsThePace) {
  PairOptions options;
  options.bulk.chunk_bytes = 64 << 10;
  auto pair = make(options);
  ASSERT_NE(pair, nullptr);
  pair->start_threads();
  const auto source = random_bytes(1 << 20, 3);
  std::vector<std::byte> destination(1 << 20);
  Outcome sent;
  pair->a->bulk.send(5, source, sent.done());
  for (std::size_t chunk = 0; chunk < 16; ++chunk) {
    EXPECT_EQ(sent.calls, 0);
    Outcome landed;
    pair->b->bulk.accept(5, chunk << 16, MutableBytes(destination).subspan(chunk << 16, 64 << 10),
                         landed.done());
    ASSERT_EQ(
        pair->b->endpoint->wait([&] { return landed.calls == 1; }, Deadline::in_ms(kPatienceMs)),
        WaitOutcome::done);
  }
  ASSERT_EQ(pair->a->endpoint->wait([&] { return sent.calls == 1; }, Deadline::in_ms(kPatienceMs)),
            WaitOutcome::done);
  EXPECT_EQ(destination, source);
}

TEST_P(BulkPath, TheOtherEndsDepartureTellsEveryCaller) {
  auto pair = make();
  ASSERT_NE(pair, nullptr);
  const auto source = random_bytes(32 << 20, 9);
  std::vector<std::byte> destination(1 << 20);
  Outcome sent, wanted;
  pair->a->bulk.send(1, source, sent.done());
  pair->a->bulk.accept_all(2, destination, wanted.done());
  pair->a->endpoint->fail({ErrorKind::unavailable, 0, "test"});
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(wanted.calls, 1);
  EXPECT_FALSE(sent.result->ok());
  EXPECT_FALSE(wanted.result->ok());
  Outcome late;
  pair->a->bulk.send(3, source, late.done());
  EXPECT_EQ(late.calls, 1);
  EXPECT_FALSE(late.result->ok());
}

INSTANTIATE_TEST_SUITE_P(Paths, BulkPath, testing::Values("fake", "posix,cma", "tcp"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ',', '_');
                           return name;
                         });

TEST(Bulk, NothingMovesBeforeItIsAccepted) {
  auto pair = make_fake_pair();
  const auto source = random_bytes(100, 1);
  Outcome sent;
  pair->a->bulk.send(1, source, sent.done());
  for (int i = 0; i < 10; ++i) {
    pair->a->endpoint->progress();
    pair->b->endpoint->progress();
  }
  EXPECT_EQ(sent.calls, 0);
  EXPECT_EQ(pair->b->endpoint->counters().bytes_received.load(), 0u);
}

TEST(Bulk, AnEmptyTransferCompletesAndAnnouncesNothing) {
  auto pair = make_fake_pair();
  Outcome sent, landed;
  pair->a->bulk.send(1, {}, sent.done());
  pair->b->bulk.accept_all(1, {}, landed.done());
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(landed.calls, 1);
}

TEST(Bulk, AChunkOfAnotherSizeIsAViolation) {
  auto pair = make_fake_pair();
  std::vector<std::byte> destination(100);
  Outcome landed;
  pair->b->bulk.accept(1, 0, destination, landed.done());
  pair->b_wire->inject_chunk({1, 0, 101});
  pair->b->endpoint->progress();
  EXPECT_TRUE(pair->b->endpoint->has_failed());
  EXPECT_EQ(landed.calls, 1);
  EXPECT_FALSE(landed.result->ok());
}

TEST(Bulk, AFloodOfAnnouncementsIsAViolation) {
  PairOptions options;
  options.bulk.unaccepted_limit = 10;
  auto pair = make_fake_pair(options);
  for (std::uint64_t i = 0; i < 11; ++i) pair->b_wire->inject_chunk({1, i, 1});
  pair->b->endpoint->progress();
  EXPECT_TRUE(pair->b->endpoint->has_failed());
}

TEST(Bulk, TheSameChunkTwiceIsAViolation) {
  auto pair = make_fake_pair();
  pair->b_wire->inject_chunk({1, 0, 1});
  pair->b_wire->inject_chunk({1, 0, 1});
  pair->b->endpoint->progress();
  EXPECT_TRUE(pair->b->endpoint->has_failed());
}

}  // namespace
}  // namespace remora::transport
