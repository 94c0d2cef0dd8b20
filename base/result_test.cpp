// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "base/environment.h"

namespace remora {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorKind::invalid_input, 7, "The number is odd."};
  return value / 2;
}

Result<int> quarter(int value) {
  REMORA_TRY(const int halved, half(value));
  REMORA_TRY(const int quartered, half(halved));
  return quartered;
}

Result<> twice(int value) {
  REMORA_TRY(int halved, half(value));
  (void)halved;
  return {};
}

Result<> outer(int value) {
  REMORA_TRY_DO(twice(value));
  return {};
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().code, 7);
  EXPECT_TRUE(outer(2).ok());
  EXPECT_EQ(outer(3).error().kind, ErrorKind::invalid_input);
}

TEST(Result, MovesUniqueOwners) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(5));
  std::unique_ptr<int> taken = std::move(made).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Error, ContextGoesOutside) {
  const Error error = Error{ErrorKind::system, 2, "No such file."}.within("While opening 'x'");
  EXPECT_EQ(error.text, "While opening 'x': No such file.");
  EXPECT_EQ(error.code, 2);
}

TEST(Environment, SizesTakeSuffixes) {
  EXPECT_EQ(environment::parse_size("64"), 64u);
  EXPECT_EQ(environment::parse_size("64K"), 65536u);
  EXPECT_EQ(environment::parse_size("2G"), 2147483648u);
  EXPECT_FALSE(environment::parse_size("2Gi"));
  EXPECT_FALSE(environment::parse_size("-1"));
  EXPECT_FALSE(environment::parse_size("99999999999999999T"));
}

TEST(Environment, UnreadableValuesNameTheVariable) {
  setenv("REMORA_TEST_NUMBER", "12x", 1);
  const auto result = environment::number("REMORA_TEST_NUMBER", 1, 0, 100);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().text.find("REMORA_TEST_NUMBER"), std::string::npos);
  unsetenv("REMORA_TEST_NUMBER");
}

}  // namespace
}  // namespace remora
