// SPDX-License-Identifier: Apache-2.0
// Blurs a picture with a Gaussian, rows first, then columns, each through shared memory, and
// compares the result with the same computation on the CPU. Whole numbers all the way, so both must
// agree to the last bit.
#include <cuda_runtime.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CUDA_CHECK(call)                                                        \
  do {                                                                          \
    const cudaError_t cuda_status = (call);                                     \
    if (cuda_status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(cuda_status)); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

constexpr int kRadius = 6;
constexpr int kTaps = 2 * kRadius + 1;
constexpr int kThreads = 128;
constexpr unsigned int kUnit = 4096;  // what all weights add up to

struct Weights {
  unsigned int of[kTaps];
};

__host__ __device__ inline int clamp_to(int value, int size) {
  return value < 0 ? 0 : value >= size ? size - 1 : value;
}

/// One line of the picture for each block in y: pixel i of it lies at line * line_step +
/// i * pixel_step. A block in x makes kThreads pixels and reads kRadius more on both sides.
__global__ void blur_lines(const uchar4* in, uchar4* out, int length, int line_step, int pixel_step,
                           Weights weights) {
  __shared__ uchar4 pixels[kThreads + 2 * kRadius];
  const int first = blockIdx.x * kThreads;
  const uchar4* line = in + blockIdx.y * line_step;
  for (int i = threadIdx.x; i < kThreads + 2 * kRadius; i += kThreads)
    pixels[i] = line[clamp_to(first + i - kRadius, length) * pixel_step];
  __syncthreads();

  const int at = first + threadIdx.x;
  if (at >= length) return;
  uint3 sum = make_uint3(kUnit / 2, kUnit / 2, kUnit / 2);
  for (int tap = 0; tap < kTaps; ++tap) {
    const uchar4 pixel = pixels[threadIdx.x + tap];
    sum.x += weights.of[tap] * pixel.x;
    sum.y += weights.of[tap] * pixel.y;
    sum.z += weights.of[tap] * pixel.z;
  }
  out[blockIdx.y * line_step + at * pixel_step] =
      make_uchar4(sum.x / kUnit, sum.y / kUnit, sum.z / kUnit, pixels[threadIdx.x + kRadius].w);
}

namespace {

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uchar4> pixels;
};

bool read_png(const char* path, Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&image, path)) {
    std::fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
  }
  image.format = PNG_FORMAT_RGBA;
  picture.width = static_cast<int>(image.width);
  picture.height = static_cast<int>(image.height);
  picture.pixels.resize(size_t{image.width} * image.height);
  if (!png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr)) {
    std::fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
  }
  return true;
}

bool write_png(const char* path, const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_RGBA;
  image.width = static_cast<unsigned int>(picture.width);
  image.height = static_cast<unsigned int>(picture.height);
  if (!png_image_write_to_file(&image, path, 0, picture.pixels.data(), 0, nullptr)) {
    std::fprintf(stderr, "%s: %s\n", path, image.message);
    return false;
  }
  return true;
}

Weights gaussian() {
  Weights weights;
  double total = 0;
  const auto bell = [](int x) { return std::exp(-x * x / (2.0 * 3.0 * 3.0)); };
  for (int x = -kRadius; x <= kRadius; ++x) total += bell(x);
  unsigned int sum = 0;
  for (int x = -kRadius; x <= kRadius; ++x)
    sum += weights.of[x + kRadius] = static_cast<unsigned int>(kUnit * bell(x) / total);
  weights.of[kRadius] += kUnit - sum;
  return weights;
}

/// The definition of the blur, one pixel at a time.
std::vector<uchar4> blur_on_cpu(const std::vector<uchar4>& in, int lines, int length, int line_step,
                                int pixel_step, const Weights& weights) {
  std::vector<uchar4> out(in.size());
  for (int line = 0; line < lines; ++line) {
    for (int at = 0; at < length; ++at) {
      unsigned int red = kUnit / 2, green = kUnit / 2, blue = kUnit / 2;
      for (int tap = 0; tap < kTaps; ++tap) {
        const int from = clamp_to(at + tap - kRadius, length);
        const uchar4 pixel = in[line * line_step + from * pixel_step];
        red += weights.of[tap] * pixel.x;
        green += weights.of[tap] * pixel.y;
        blue += weights.of[tap] * pixel.z;
      }
      uchar4& pixel = out[line * line_step + at * pixel_step];
      pixel.x = red / kUnit;
      pixel.y = green / kUnit;
      pixel.z = blue / kUnit;
      pixel.w = in[line * line_step + at * pixel_step].w;
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: image_blur INPUT.png OUTPUT.png\n");
    return 2;
  }
  Picture picture;
  if (!read_png(argv[1], picture)) return 1;
  const int width = picture.width, height = picture.height;
  const size_t bytes = picture.pixels.size() * sizeof(uchar4);
  const Weights weights = gaussian();

  uchar4 *device_picture, *device_rows;
  CUDA_CHECK(cudaMalloc(&device_picture, bytes));
  CUDA_CHECK(cudaMalloc(&device_rows, bytes));
  CUDA_CHECK(cudaMemcpy(device_picture, picture.pixels.data(), bytes, cudaMemcpyHostToDevice));
  const dim3 row_blocks((width + kThreads - 1) / kThreads, height);
  const dim3 column_blocks((height + kThreads - 1) / kThreads, width);
  blur_lines<<<row_blocks, kThreads>>>(device_picture, device_rows, width, width, 1, weights);
  CUDA_CHECK(cudaGetLastError());
  blur_lines<<<column_blocks, kThreads>>>(device_rows, device_picture, height, 1, width, weights);
  CUDA_CHECK(cudaGetLastError());
  Picture blurred{width, height, std::vector<uchar4>(picture.pixels.size())};
  CUDA_CHECK(cudaMemcpy(blurred.pixels.data(), device_picture, bytes, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(device_picture));
  CUDA_CHECK(cudaFree(device_rows));
  if (!write_png(argv[2], blurred)) return 1;

  const std::vector<uchar4> rows = blur_on_cpu(picture.pixels, height, width, width, 1, weights);
  const std::vector<uchar4> expected = blur_on_cpu(rows, width, height, 1, width, weights);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &blurred.pixels[i], sizeof(uchar4)) != 0) {
      std::fprintf(stderr, "pixel %zu differs from the CPU's result\n", i);
      return 1;
    }
  }
  std::printf("image_blur: %dx%d pixels, the same on the CPU: %s\n", width, height, argv[2]);
  return 0;
}
