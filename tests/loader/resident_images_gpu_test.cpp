#include "src/loader/resident_images.h"
#include "tests/loader/resident_loaders.h"
#include "tests/support/skip.h"

using namespace settrain;

TEST_CASE("resident images on a GPU make the CPU's batches", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  PipelineOptions shifted, cut_out;
  shifted.pad = 4;
  shifted.flip = config::Switch::kOn;
  cut_out.pipeline = "plantnet";
  cut_out.input_size = 5;
  cut_out.resize_size = 7;
  for (const int64_t channels : {1, 3}) {
    for (const bool channels_last : {false, true}) {
      CAPTURE(channels, channels_last);
      const Split split = test::random_split(9, 7, channels);
      for (const ViewUse use : {ViewUse::kTraining, ViewUse::kEvaluation})
        test::check_equal(test::LoaderPair(split, shifted, use, channels_last, at::kCUDA), 3);
      test::check_equal(test::LoaderPair(split, cut_out, ViewUse::kTenCrops, channels_last, at::kCUDA), 1);
    }
  }
}
