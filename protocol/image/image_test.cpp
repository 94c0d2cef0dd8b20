// SPDX-License-Identifier: Apache-2.0
#include "protocol/image/image.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "protocol/image/fatbin.h"
#include "protocol/image/module_summary.h"
#include "protocol/image/test_images.h"

// The test stands where cudart stands: nvcc's host code calls these while a library is loaded.
namespace {
std::vector<const void*> registered_wrappers;
}
#define EXPORTED extern "C" __attribute__((visibility("default")))
EXPORTED void** __cudaRegisterFatBinary(void* wrapper) {
  registered_wrappers.push_back(wrapper);
  static void* handle = nullptr;
  return &handle;
}
EXPORTED void __cudaRegisterFatBinaryEnd(void**) {}
EXPORTED void __cudaUnregisterFatBinary(void**) {}
EXPORTED void __cudaRegisterFunction() {}
EXPORTED void __cudaRegisterVar() {}
EXPORTED void __cudaRegisterManagedVar() {}
EXPORTED void __cudaInitModule() {}
EXPORTED void __cudaGetKernel() {}
EXPORTED void __cudaLaunchKernel() {}
EXPORTED void __cudaPopCallConfiguration() {}
EXPORTED void __cudaPushCallConfiguration() {}

namespace remora::image {
namespace {

/// What a library registers while it is loaded; once, so the answer is kept. Never closed: the
/// wrappers lie in it.
std::vector<const void*> wrappers_of(const std::string& library) {
  static std::map<std::string, std::vector<const void*>> known;
  if (const auto found = known.find(library); found != known.end()) return found->second;
  registered_wrappers.clear();
  EXPECT_NE(dlopen((REMORA_TEST_IMAGES "/" + library).c_str(), RTLD_NOW | RTLD_LOCAL), nullptr)
      << dlerror();
  return known[library] = registered_wrappers;
}

void expect_same_bytes(Bytes a, Bytes b) { EXPECT_TRUE(std::ranges::equal(a, b)); }

TEST(Image, FindsTheEndOfEachKind) {
  struct Case {
    const char* file;
    Kind kind;
  };
  for (const Case& c : {Case{"sample.default.fatbin", Kind::fat_binary},
                        Case{"sample.none.fatbin", Kind::fat_binary},
                        Case{"sample.cubin", Kind::cubin}, Case{"sample.ptx", Kind::ptx_text}}) {
    SCOPED_TRACE(c.file);
    auto file = read_test_image(c.file);
    if (c.kind == Kind::ptx_text) file.push_back(std::byte{0});
    const std::size_t size = file.size();
    file.resize(size + 4096, std::byte{0x5a});  // what follows in memory is not part of it
    auto view = find_extent(file.data());
    ASSERT_TRUE(view) << view.error().text;
    EXPECT_EQ(view->kind, c.kind);
    EXPECT_EQ(view->main.data(), file.data());
    EXPECT_EQ(view->main.size(), size);

    const FlatImage flat = flatten(*view);
    EXPECT_EQ(flat.bytes.data(), file.data()) << "a single image is not copied";
    auto again = read_flat(flat.bytes);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->kind, c.kind);
    EXPECT_EQ(LoadableImage(*again).pointer(), file.data());
    EXPECT_FALSE(read_flat(bytes_of(file.data(), size - 1)));
    EXPECT_FALSE(read_flat(bytes_of(file.data(), size + 1)));
  }
}

TEST(Image, FollowsAVersionOneWrapper) {
  const auto wrappers = wrappers_of("libplain.so");
  ASSERT_EQ(wrappers.size(), 1u);
  auto view = find_extent(wrappers[0]);
  ASSERT_TRUE(view) << view.error().text;
  EXPECT_EQ(view->kind, Kind::fat_binary);
  EXPECT_EQ(claimed_fat_binary_size(view->main), view->main.size());
  auto contents = summarize(*view);
  ASSERT_TRUE(contents) << contents.error().text;
  expect_sample_contents(*contents);
}

TEST(Image, LinkedImageTravelsWithAllItsParts) {
  // One wrapper for the whole program, not one for each translation unit.
  const auto wrappers = wrappers_of("liblinked.so");
  ASSERT_EQ(wrappers.size(), 1u);
  auto view = find_extent(wrappers[0]);
  ASSERT_TRUE(view) << view.error().text;
  ASSERT_EQ(view->kind, Kind::linked_fat_binary);
  ASSERT_EQ(view->pre_link.size(), 2u);

  const FlatImage flat = flatten(*view);
  auto again = read_flat(flat.bytes);
  ASSERT_TRUE(again) << again.error().text;
  ASSERT_EQ(again->kind, Kind::linked_fat_binary);
  expect_same_bytes(again->main, view->main);
  ASSERT_EQ(again->pre_link.size(), 2u);
  expect_same_bytes(again->pre_link[0], view->pre_link[0]);
  expect_same_bytes(again->pre_link[1], view->pre_link[1]);

  // The rebuilt wrapper is read like the original one.
  const LoadableImage loadable(*again);
  auto third = find_extent(loadable.pointer());
  ASSERT_TRUE(third) << third.error().text;
  EXPECT_EQ(third->kind, Kind::linked_fat_binary);
  expect_same_bytes(flatten(*third).bytes, flat.bytes);

  for (std::size_t size = 0; size < flat.bytes.size(); ++size)
    ASSERT_FALSE(read_flat(flat.bytes.first(size))) << size;
}

TEST(Image, LinkedImageGivesKernelsAndOnePtxForEachUnit) {
  const auto wrappers = wrappers_of("liblinked.so");
  auto view = find_extent(wrappers.empty() ? nullptr : wrappers[0]);
  ASSERT_TRUE(view) << view.error().text;
  auto contents = summarize(*view);
  ASSERT_TRUE(contents) << contents.error().text;
  const Kernel* across = find_kernel(*contents, "calls_across");
  const Kernel* sets = find_kernel(*contents, "sets_counter");
  ASSERT_TRUE(across != nullptr && sets != nullptr);
  EXPECT_EQ(across->parameters, (std::vector<Parameter>{{0, 8}, {8, 4}}));
  EXPECT_EQ(sets->parameters, (std::vector<Parameter>{{0, 8}, {8, 1}}));
  const Global* counter = find_global(*contents, "linked_counter");
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(counter->size, 4u);

  auto texts = select_ptx(*view, 121);
  ASSERT_TRUE(texts) << texts.error().text;
  ASSERT_EQ(texts->size(), 2u);
  const bool user_is_first = (*texts)[0].text.find(".entry calls_across") != std::string::npos;
  EXPECT_NE((*texts)[user_is_first ? 0 : 1].text.find(".entry calls_across"), std::string::npos);
  EXPECT_NE((*texts)[user_is_first ? 1 : 0].text.find(".entry sets_counter"), std::string::npos);
}

TEST(Image, GarbageIsAnError) {
  EXPECT_FALSE(find_extent(nullptr));
  EXPECT_FALSE(find_extent("hello, this is no device code"));
  EXPECT_FALSE(find_extent(""));
  EXPECT_FALSE(read_flat({}));
}

/// Bytes that end where mapped memory ends, as a cut-off file does that a program has mapped.
class AtTheEndOfMemory {
 public:
  explicit AtTheEndOfMemory(Bytes bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = align_up(bytes.size(), page) + page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(base_ + size_ - page, page);
    size_ -= page;
    data_ = base_ + size_ - bytes.size();
    std::ranges::copy(bytes, data_);
  }
  ~AtTheEndOfMemory() { munmap(base_, size_); }
  const std::byte* data() const { return data_; }

 private:
  std::byte* base_;
  std::byte* data_;
  std::size_t size_;
};

TEST(Image, ReadsNoFurtherThanMemoryIsMapped) {
  for (const char* name : {"sample.default.fatbin", "sample.cubin", "sample.ptx"}) {
    SCOPED_TRACE(name);
    auto file = read_test_image(name);
    file.push_back(std::byte{0});
    const std::size_t whole = file.size() - (std::string(name) == "sample.ptx" ? 0 : 1);
    {
      const AtTheEndOfMemory complete{Bytes(file).first(whole)};
      auto view = find_extent(complete.data());
      ASSERT_TRUE(view) << view.error().text;
      EXPECT_EQ(view->main.size(), whole);
    }
    for (std::size_t size = 0; size < whole; size += 1 + whole / 500) {
      const AtTheEndOfMemory cut{Bytes(file).first(size)};
      EXPECT_FALSE(find_extent(cut.data())) << size;
    }
  }
}

}  // namespace
}  // namespace remora::image
