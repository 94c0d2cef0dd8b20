// SPDX-License-Identifier: Apache-2.0
#include "protocol/wire/record.h"

#include <gtest/gtest.h>

#include <vector>

#include "protocol/records.h"
#include "protocol/wire/reply.h"

namespace remora::protocol {
namespace {

std::vector<std::byte> free_record() {
  cuMemFree_v2_call call;
  call.dptr = 0x1200'0000'0000;
  std::vector<std::byte> record(record_size(call));
  EXPECT_TRUE(write_record(record, call, 7, kReplyWanted));
  return record;
}

TEST(Record, HeaderSaysWhatFollows) {
  const auto record = free_record();
  ASSERT_EQ(record.size(), 24u);
  RecordHeader header;
  Bytes body;
  ASSERT_EQ(open_record(record, header, body), Verdict::ok);
  EXPECT_EQ(header.size, 24u);
  EXPECT_EQ(header.call, CallId::cuMemFree_v2);
  EXPECT_EQ(header.context, 7u);
  EXPECT_TRUE(header.reply_wanted());
  cuMemFree_v2_call call;
  Reader reader(body);
  ASSERT_EQ(cuMemFree_v2_call::decode(reader, call), Verdict::ok);
  EXPECT_EQ(call.dptr, 0x1200'0000'0000u);
}

TEST(Record, AHeaderThatLiesIsAViolation) {
  RecordHeader header;
  Bytes body;
  auto shorter = free_record();
  shorter.resize(16);
  EXPECT_EQ(open_record(shorter, header, body), Verdict::violation);
  shorter.resize(15);
  EXPECT_EQ(open_record(shorter, header, body), Verdict::violation);
  EXPECT_EQ(open_record({}, header, body), Verdict::violation);
  auto flagged = free_record();
  flagged[6] = std::byte{0x02};
  EXPECT_EQ(open_record(flagged, header, body), Verdict::violation) << "a flag that nobody knows";
  auto reserved = free_record();
  reserved[12] = std::byte{1};
  EXPECT_EQ(open_record(reserved, header, body), Verdict::violation);
}

TEST(Record, TheSpaceMustBeExact) {
  cuMemFree_v2_call call;
  std::vector<std::byte> space(64);
  const std::size_t size = record_size(call);
  EXPECT_FALSE(write_record(MutableBytes(space).first(size - 8), call, 0));
  EXPECT_FALSE(write_record(MutableBytes(space).first(size + 8), call, 0));
  EXPECT_FALSE(write_record(MutableBytes(space).first(8), call, 0));
}

TEST(Record, ALaunchIsSmall) {
  cuLaunchKernel_call call;
  const std::byte parameters[32]{};
  call.kernelParams = parameters;
  EXPECT_EQ(record_size(call), 16u + 9 * 8 + 8 + 32);
}

TEST(Reply, IsARemoraReplyWithItsOutputsInPlace) {
  cuMemGetInfo_v2_reply outputs;
  outputs.free = 5;
  outputs.total = 9;
  std::vector<std::byte> in_place(reply_size(outputs));
  ASSERT_TRUE(write_reply(in_place, 77, -3, outputs));

  std::vector<std::byte> encoded(outputs.encoded_size());
  Writer writer(encoded);
  outputs.encode(writer);
  remora_reply_call reply;
  reply.sequence = 77;
  reply.result = -3;
  reply.outputs = encoded;
  std::vector<std::byte> gathered(record_size(reply));
  ASSERT_TRUE(write_record(gathered, reply, 0));
  EXPECT_EQ(in_place, gathered);
}

TEST(CallInfo, KnowsEveryNumberAndNoOther) {
  const CallInfo& copy = call_info(CallId::cuMemcpyHtoDAsync_v2);
  EXPECT_EQ(copy.name, "cuMemcpyHtoDAsync_v2");
  EXPECT_EQ(copy.base_name, "cuMemcpyHtoDAsync");
  EXPECT_EQ(copy.call_class, CallClass::posted);
  EXPECT_TRUE(copy.has_record);
  EXPECT_EQ(copy.since, 3020u);
  EXPECT_EQ(copy.twin_name, "cuMemcpyHtoDAsync_v2_ptsz");
  EXPECT_EQ(copy.twin_since, 7000u);
  EXPECT_EQ(name_of(CallId::cuInit), "cuInit");
  EXPECT_FALSE(call_info(CallId::cuInit).has_record);
  EXPECT_TRUE(name_of(CallId{0}).empty());
  EXPECT_TRUE(name_of(CallId{65535}).empty());
}

}  // namespace
}  // namespace remora::protocol
