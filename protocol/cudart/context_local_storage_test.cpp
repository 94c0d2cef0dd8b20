// SPDX-License-Identifier: Apache-2.0
#include "protocol/cudart/context_local_storage.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace remora::cudart {
namespace {

const auto kContext = reinterpret_cast<CUcontext>(0x100);
const auto kOther = reinterpret_cast<CUcontext>(0x200);
void* const kKey = reinterpret_cast<void*>(0x1);
void* const kKey2 = reinterpret_cast<void*>(0x2);
void* const kValue = reinterpret_cast<void*>(0xA);

struct Destroyed {
  CUcontext context;
  void* key;
  void* value;
};
std::vector<Destroyed> destroyed;
void note_destruction(CUcontext context, void* key, void* value) {
  destroyed.push_back({context, key, value});
}

TEST(ContextLocalStorage, GetsWhatWasPutForThatContextAndKeyOnly) {
  ContextLocalStorage storage;
  void* value = nullptr;
  EXPECT_EQ(storage.get(&value, kContext, kKey), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(storage.put(kContext, kKey, kValue, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(storage.get(&value, kContext, kKey), CUDA_SUCCESS);
  EXPECT_EQ(value, kValue);
  EXPECT_EQ(storage.get(&value, kContext, kKey2), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(storage.get(&value, kOther, kKey), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(storage.get(&value, nullptr, kKey), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(ContextLocalStorage, RemoveLeavesTheDestructorAloneAndDestroyRunsIt) {
  destroyed.clear();
  ContextLocalStorage storage;
  ASSERT_EQ(storage.put(kContext, kKey, kValue, &note_destruction), CUDA_SUCCESS);
  EXPECT_EQ(storage.remove(kContext, kKey), CUDA_SUCCESS);
  EXPECT_EQ(storage.remove(kContext, kKey), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(destroyed.empty());

  ASSERT_EQ(storage.put(kContext, kKey, kValue, &note_destruction), CUDA_SUCCESS);
  ASSERT_EQ(storage.put(kOther, kKey2, kValue, &note_destruction), CUDA_SUCCESS);
  storage.destroy(kContext);
  ASSERT_EQ(destroyed.size(), 1u);
  EXPECT_EQ(destroyed[0].context, kContext);
  EXPECT_EQ(destroyed[0].key, kKey);
  EXPECT_EQ(destroyed[0].value, kValue);
  void* value = nullptr;
  EXPECT_EQ(storage.get(&value, kContext, kKey), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(storage.get(&value, kOther, kKey2), CUDA_SUCCESS);
}

TEST(ContextLocalStorage, RefusesMoreThanItCanHoldAndReusesWhatWasRemoved) {
  ContextLocalStorage storage;
  std::uintptr_t count = 0;
  while (storage.put(kContext, reinterpret_cast<void*>(count + 1), kValue, nullptr) == CUDA_SUCCESS)
    ++count;
  EXPECT_GE(count, 1000u);
  EXPECT_EQ(storage.remove(kContext, kKey), CUDA_SUCCESS);
  EXPECT_EQ(storage.put(kOther, kKey, kValue, nullptr), CUDA_SUCCESS);
}

// A reader never sees a value of another key while slots change hands under it.
TEST(ContextLocalStorage, ReadersSeeWholeEntriesWhileOthersWrite) {
  ContextLocalStorage storage;
  ASSERT_EQ(storage.put(kOther, kKey2, kKey2, nullptr), CUDA_SUCCESS);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) {
      void* key = reinterpret_cast<void*>(static_cast<std::uintptr_t>(16 + i % 5));
      storage.put(kContext, key, key, nullptr);
      storage.remove(kContext, key);
    }
    stop = true;
  });
  while (!stop) {
    for (std::uintptr_t i = 16; i < 21; ++i) {
      void* value = nullptr;
      if (storage.get(&value, kContext, reinterpret_cast<void*>(i)) == CUDA_SUCCESS) {
        ASSERT_EQ(value, reinterpret_cast<void*>(i));
      }
    }
    void* value = nullptr;
    ASSERT_EQ(storage.get(&value, kOther, kKey2), CUDA_SUCCESS);
    ASSERT_EQ(value, kKey2);
  }
  writer.join();
}

}  // namespace
}  // namespace remora::cudart
