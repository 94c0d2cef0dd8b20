// SPDX-License-Identifier: Apache-2.0
#include "protocol/wire/control.h"

#include <gtest/gtest.h>

#include "protocol/wire/writer.h"

namespace remora::protocol {
namespace {

ClientHello hello() {
  ClientHello hello;
  hello.build_version = "0.1.0";
  hello.client_pid = 4711;
  hello.program_name = "vector_add";
  hello.worker_address = {std::byte{1}, std::byte{2}, std::byte{3}};
  return hello;
}

SessionOffer offer() {
  SessionOffer offer;
  offer.session_id = 0x0102030405060708;
  offer.epoch = 3;
  offer.driver_version = 13000;
  offer.worker_address = {std::byte{9}};
  offer.inline_limit = 32768;
  offer.unacknowledged_limit = 64 << 20;
  offer.features = 5;
  offer.software_device = true;
  DeviceOffer device;
  device.name = "Software GPU";
  device.uuid[0] = std::byte{0xAB};
  device.uuid[15] = std::byte{0xCD};
  device.total_memory = 1ull << 32;
  device.attributes = {{75, 12}, {76, -1}};
  device.least_stream_priority = 0;
  device.greatest_stream_priority = -5;
  device.window = {0x1200'0000'0000, 1ull << 32, 2 << 20, 64 << 20};
  offer.devices = {device, device};
  offer.devices[1].name = "";
  return offer;
}

TEST(Control, HelloComesBack) {
  const auto message = decode_control<ClientHello>(encode_control(hello()));
  ASSERT_TRUE(message.ok()) << message.error().text;
  EXPECT_EQ(message->build_version, "0.1.0");
  EXPECT_EQ(message->credential, "");
  EXPECT_EQ(message->client_pid, 4711u);
  EXPECT_EQ(message->program_name, "vector_add");
  EXPECT_EQ(message->worker_address, hello().worker_address);
}

TEST(Control, HelloHasTheseBytes) {
  ClientHello small;
  small.build_version = "v";
  small.client_pid = 2;
  const auto body = encode_control(small);
  std::vector<std::byte> expected(48);
  expected[0] = std::byte{1};  // length of "v"
  expected[8] = std::byte{'v'};
  expected[24] = std::byte{2};  // after the empty credential
  EXPECT_EQ(body, expected);
}

TEST(Control, OfferComesBack) {
  const auto message = decode_control<SessionOffer>(encode_control(offer()));
  ASSERT_TRUE(message.ok()) << message.error().text;
  EXPECT_EQ(message->session_id, 0x0102030405060708u);
  EXPECT_EQ(message->epoch, 3u);
  EXPECT_EQ(message->driver_version, 13000);
  EXPECT_EQ(message->unacknowledged_limit, 64u << 20);
  EXPECT_TRUE(message->software_device);
  ASSERT_EQ(message->devices.size(), 2u);
  const DeviceOffer& device = message->devices[0];
  EXPECT_EQ(device.name, "Software GPU");
  EXPECT_EQ(device.uuid[15], std::byte{0xCD});
  ASSERT_EQ(device.attributes.size(), 2u);
  EXPECT_EQ(device.attributes[1].attribute, 76);
  EXPECT_EQ(device.attributes[1].value, -1);
  EXPECT_EQ(device.greatest_stream_priority, -5);
  EXPECT_EQ(device.window.base, 0x1200'0000'0000u);
  EXPECT_EQ(device.window.committed_bytes, 64u << 20);
  EXPECT_EQ(message->devices[1].name, "");
}

TEST(Control, TheOthersComeBack) {
  const auto refusal =
      decode_control<Refusal>(encode_control(Refusal{RefusalReason::busy, "No session is free."}));
  ASSERT_TRUE(refusal.ok());
  EXPECT_EQ(refusal->reason, RefusalReason::busy);
  EXPECT_EQ(refusal->text, "No session is free.");
  const auto answer = decode_control<WindowAnswer>(encode_control(WindowAnswer{{1, 2, 3}}));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->bases, (std::vector<std::uint64_t>{1, 2, 3}));
  const auto next = decode_control<WindowOffer>(encode_control(WindowOffer{{4}}));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->bases, (std::vector<std::uint64_t>{4}));
  EXPECT_TRUE(decode_control<Ready>(encode_control(Ready{})).ok());
  EXPECT_TRUE(encode_control(Ready{}).empty());
}

TEST(Control, CutAnywhereIsMalformed) {
  const auto body = encode_control(offer());
  for (std::size_t size = 0; size < body.size(); ++size) {
    const auto cut = decode_control<SessionOffer>(Bytes(body).first(size));
    ASSERT_FALSE(cut.ok()) << "at " << size;
    EXPECT_EQ(cut.error().kind, ErrorKind::invalid_input);
  }
}

TEST(Control, MoreThanTheMessageIsMalformed) {
  auto body = encode_control(hello());
  body.resize(body.size() + kWordBytes);
  EXPECT_FALSE(decode_control<ClientHello>(body).ok());
  EXPECT_FALSE(decode_control<Ready>(Bytes(body).first(8)).ok());
}

TEST(Control, CountsAndTextsAreBounded) {
  EXPECT_TRUE(decode_control<WindowAnswer>(
                  encode_control(WindowAnswer{std::vector<std::uint64_t>(kMaxDevices)}))
                  .ok());
  EXPECT_FALSE(decode_control<WindowAnswer>(
                   encode_control(WindowAnswer{std::vector<std::uint64_t>(kMaxDevices + 1)}))
                   .ok());
  EXPECT_TRUE(decode_control<Refusal>(
                  encode_control(Refusal{RefusalReason::busy, std::string(kMaxControlText, 'x')}))
                  .ok());
  EXPECT_FALSE(
      decode_control<Refusal>(
          encode_control(Refusal{RefusalReason::busy, std::string(kMaxControlText + 1, 'x')}))
          .ok());
}

TEST(Control, AReasonThatIsNoneIsMalformed) {
  std::vector<std::byte> body(16);
  EXPECT_FALSE(decode_control<Refusal>(body).ok());
  body[0] = std::byte{7};
  EXPECT_FALSE(decode_control<Refusal>(body).ok());
  body[0] = std::byte{6};
  EXPECT_TRUE(decode_control<Refusal>(body).ok());
}

}  // namespace
}  // namespace remora::protocol
