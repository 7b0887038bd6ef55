#include "src/measure/bench/random_images.h"

#include <fmt/format.h>

namespace settrain {

std::vector<std::string> random_images(const ModelEntry& model, int64_t batch, int64_t size, int64_t classes) {
  return {"data.name=synthetic",
          fmt::format("data.image_size={}", size > 0 ? size : model.usual.height),
          fmt::format("data.num_classes={}", classes > 0 ? classes : model.usual.num_classes),
          fmt::format("data.train_size={}", batch),
          fmt::format("data.batch_size={}", batch),
          "data.val_size=1",
          "data.test_size=1",
          "train.epochs=1",  // of one step, again and again
          "optimizer.lr=0.001",
          "eval.top_k=[1]",
          "eval.average_k=[]"};
}

}  // namespace settrain
