// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target once over each file of its corpus, where libFuzzer is not linked in: the way
// in which ctest replays found inputs in every preset. Arguments are files and directories; one
// that is missing, or no input at all, is an error.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read.\n", path.c_str());
    return false;
  }
  // Named before it runs, so that a crash says which input it was.
  std::fprintf(stderr, "replaying %s, %zu bytes\n", path.c_str(), bytes.size());
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  bool all_read = true;
  const auto run = [&](const fs::path& path) {
    if (replay(path))
      ++replayed;
    else
      all_read = false;
  };
  for (int i = 1; i < argc; ++i) {
    const fs::path path = argv[i];
    std::error_code error;
    if (fs::is_directory(path, error)) {
      for (const auto& entry : fs::recursive_directory_iterator(path, error))
        if (entry.is_regular_file()) run(entry.path());
    } else {
      run(path);
    }
  }
  std::fprintf(stderr, "replayed %zu inputs\n", replayed);
  return all_read && replayed > 0 ? 0 : 1;
}
