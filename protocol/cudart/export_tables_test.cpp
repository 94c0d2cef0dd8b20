// SPDX-License-Identifier: Apache-2.0
#include "protocol/cudart/export_tables.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>

#include "base/log.h"
#include "protocol/cudart/handshake.h"

namespace remora::cudart {
namespace {

const auto kPrimary = reinterpret_cast<CUcontext>(0x4000);

class FakeHost final : public CudartHost {
 public:
  int driver_version() override { return 13010; }
  std::vector<DeviceIdentity> device_identities() override {
    return {{.uuid = {1, 2, 3}, .pci_domain = 0, .pci_bus = 5, .pci_device = 0}};
  }
  CUresult primary_context(CUdevice device, CUcontext* context) override {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    *context = kPrimary;
    return CUDA_SUCCESS;
  }
  CUcontext current_context() override { return kPrimary; }
  CUresult context_id(CUcontext, unsigned long long* id) override {
    *id = 7;
    return CUDA_SUCCESS;
  }
  bool is_context(CUcontext context) override { return context == kPrimary; }
  CUresult load_module(CUmodule* module, const void* image) override {
    *module = static_cast<CUmodule>(const_cast<void*>(image));
    return CUDA_SUCCESS;
  }
  CUresult module_functions(CUmodule, std::vector<CUfunction>* functions) override {
    *functions = {reinterpret_cast<CUfunction>(1), reinterpret_cast<CUfunction>(2)};
    return CUDA_SUCCESS;
  }
};

class ExportTables : public ::testing::Test {
 protected:
  void SetUp() override {
    static FakeHost host;
    install_cudart_host(&host);
  }

  static const void* const* table(std::initializer_list<int> id_bytes) {
    CUuuid id;
    int i = 0;
    for (int byte : id_bytes) id.bytes[i++] = static_cast<char>(byte);
    const void* found = nullptr;
    return export_table(&found, &id) == CUDA_SUCCESS ? static_cast<const void* const*>(found)
                                                     : nullptr;
  }
  template <typename Function>
  static Function* slot(const void* const* table, int index) {
    return reinterpret_cast<Function*>(const_cast<void*>(table[index]));
  }

  static const void* const* cudart_interface() {
    return table({0x6B, 0xD5, 0xFB, 0x6C, 0x5B, 0xF4, 0xE7, 0x4A, 0x89, 0x87, 0xD9, 0x39, 0x12,
                  0xFD, 0x9D, 0xF9});
  }
  static const void* const* integrity() {
    return table({0xD4, 0x08, 0x20, 0x55, 0xBD, 0xE6, 0x70, 0x4B, 0x8D, 0x34, 0xBA, 0x12, 0x3C,
                  0x66, 0xE1, 0xF2});
  }
};

TEST_F(ExportTables, GivesPrimaryContextWithoutRetain) {
  const void* const* interface = cudart_interface();
  ASSERT_NE(interface, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(interface[0]), 13 * sizeof(void*));
  CUcontext context = nullptr;
  EXPECT_EQ((slot<CUresult(CUcontext*, CUdevice)>(interface, 2)(&context, 0)), CUDA_SUCCESS);
  EXPECT_EQ(context, kPrimary);
  EXPECT_EQ((slot<CUresult(CUcontext*, CUdevice)>(interface, 2)(&context, 9)),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cudart_interface(), interface) << "tables are the same for every caller";
}

TEST_F(ExportTables, RefusesUnknownSlotsAndTablesOnceInTheLog) {
  const auto before = log::warnings_written();
  auto* unknown = slot<CUresult()>(cudart_interface(), 5);
  EXPECT_EQ(unknown(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(unknown(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(log::warnings_written(), before + 1);

  CUuuid id;
  std::memset(&id, 0x11, sizeof id);
  const void* found = &id;
  EXPECT_EQ(export_table(&found, &id), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(found, nullptr);
  EXPECT_EQ(export_table(&found, &id), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(log::warnings_written(), before + 2);
  EXPECT_EQ(export_table(nullptr, &id), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(export_table(&found, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ExportTables, StoresValuesUnderTheCurrentContext) {
  const void* const* storage = table({0xC6, 0x93, 0x33, 0x6E, 0x11, 0x21, 0xDF, 0x11, 0xA8, 0xC3,
                                      0x68, 0xF3, 0x55, 0xD8, 0x95, 0x93});
  ASSERT_NE(storage, nullptr);
  EXPECT_EQ(storage[3], nullptr);
  auto* put = slot<CUresult(CUcontext, void*, void*, void*)>(storage, 0);
  auto* remove = slot<CUresult(CUcontext, void*)>(storage, 1);
  auto* get = slot<CUresult(void**, CUcontext, void*)>(storage, 2);
  int key = 0;
  int stored = 0;
  void* value = nullptr;
  EXPECT_EQ(get(&value, nullptr, &key), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(put(nullptr, &key, &stored, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(get(&value, kPrimary, &key), CUDA_SUCCESS);
  EXPECT_EQ(value, &stored);
  EXPECT_EQ(remove(kPrimary, &key), CUDA_SUCCESS);
}

TEST_F(ExportTables, AnswersTheHandshakeWithTheAddressesHandedOut) {
  if (!handshake_built()) {
    EXPECT_EQ(integrity(), nullptr);
    return;
  }
  const void* const* table = integrity();
  ASSERT_NE(table, nullptr);
  Md2::Digest answer{};
  ASSERT_EQ((slot<CUresult(std::uint32_t, std::uint64_t, std::uint8_t*)>(table, 1)(
                13002, 1'700'000'000, answer.data())),
            CUDA_SUCCESS);
  FakeHost host;
  EXPECT_EQ(answer,
            handshake_answer(
                {.driver_version = 13010,
                 .asked_version = 13002,
                 .process = static_cast<std::uint32_t>(getpid()),
                 .thread = static_cast<std::uint32_t>(pthread_self()),
                 .cudart_interface_table = reinterpret_cast<std::uint64_t>(cudart_interface()),
                 .integrity_table = reinterpret_cast<std::uint64_t>(table),
                 .integrity_function = reinterpret_cast<std::uint64_t>(table[1]),
                 .unix_seconds = 1'700'000'000},
                host.device_identities()));
}

TEST_F(ExportTables, CountsTheFunctionsThatItVisits) {
  const void* const* functions = table({0x6E, 0x16, 0x3F, 0xBE, 0xB9, 0x58, 0x44, 0x4D, 0x83, 0x5C,
                                        0xE1, 0x82, 0xAF, 0xF1, 0x99, 0x1E});
  ASSERT_NE(functions, nullptr);
  using Visit = void(void*, CUfunction, CUmodule);
  auto* visit = slot<int(CUcontext, CUmodule, Visit*, void*)>(functions, 7);
  std::vector<CUfunction> seen;
  const int count = visit(
      kPrimary, nullptr,
      [](void* opaque, CUfunction node, CUmodule) {
        static_cast<std::vector<CUfunction>*>(opaque)->push_back(node);
      },
      &seen);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace remora::cudart
