// SPDX-License-Identifier: Apache-2.0
// Expected values were computed with another implementation of MD2 and HMAC written out by hand.
#include "protocol/cudart/handshake.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace remora::cudart {
namespace {

constexpr HandshakeQuestion kQuestion{.driver_version = 13010,
                                      .asked_version = 13001,
                                      .process = 4711,
                                      .thread = 0x12345678,
                                      .cudart_interface_table = 0x1000,
                                      .integrity_table = 0x2000,
                                      .integrity_function = 0x3000,
                                      .unix_seconds = 1'700'000'000};

std::string hex(const Md2::Digest& digest) {
  std::string text;
  for (std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

TEST(Handshake, AnswersWithoutDevices) {
  if (!handshake_built()) GTEST_SKIP() << "built without REMORA_CUDART_HANDSHAKE";
  EXPECT_EQ(hex(handshake_answer(kQuestion, {})), "041f6a2b9cea00413b0e265638abf5c4");
}

TEST(Handshake, CoversEveryDeviceInOrder) {
  if (!handshake_built()) GTEST_SKIP() << "built without REMORA_CUDART_HANDSHAKE";
  DeviceIdentity devices[2] = {{.uuid = {}, .pci_domain = 0, .pci_bus = 2, .pci_device = 0},
                               {.uuid = {}, .pci_domain = 1, .pci_bus = 3, .pci_device = 4}};
  std::iota(devices[0].uuid.begin(), devices[0].uuid.end(), 0);
  std::iota(devices[1].uuid.begin(), devices[1].uuid.end(), 16);
  EXPECT_EQ(hex(handshake_answer(kQuestion, devices)), "91c279f61612c4c5299424fcb69c5f96");
}

}  // namespace
}  // namespace remora::cudart
