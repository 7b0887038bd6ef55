#include "src/parallel/store_client.h"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {

c10::intrusive_ptr<c10d::Store> connect_to_store(const Launch& launch, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.isServer = launch.rank == 0 && !launch.launcher_keeps_store;
  options.timeout = timeout;
  options.waitWorkers = false;
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.host, options);
  } catch (const std::exception& error) {
    throw ParallelError(fmt::format("process {} of {} cannot {} the store at {}:{}: {}", launch.rank, launch.world_size,
                                    options.isServer ? "open" : "reach", launch.host, launch.port, cause(error)));
  }
}

std::string cause(const std::exception& error) {
  std::string line = first_line(error.what());
  while (line.starts_with('[')) {
    const size_t end = line.find("] ");
    if (end == std::string::npos) break;
    line.erase(0, end + 2);
  }
  return line;
}

StoreClient::StoreClient(c10::intrusive_ptr<c10d::Store> store, std::chrono::milliseconds patience)
    : store_(std::move(store)), patience_(patience) {}

// c10d waits for answers without a limit: a thread of its own does, which is left behind where none comes.
template <class Call>
auto StoreClient::ask(Call call) {
  using Answer = decltype(call(*store_));
  if (is_silent_) throw StoreSilent("the store does not answer");
  auto task =
      std::make_shared<std::packaged_task<Answer()>>([store = store_, call = std::move(call)] { return call(*store); });
  std::future<Answer> answer = task->get_future();
  std::thread thread([task] { (*task)(); });
  if (answer.wait_for(patience_) != std::future_status::ready) {
    thread.detach();
    is_silent_ = true;
    throw StoreSilent("the store does not answer");
  }
  thread.join();
  return answer.get();
}

bool StoreClient::has(const std::vector<std::string>& keys) {
  return ask([keys](c10d::Store& store) { return store.check(keys); });
}

std::string StoreClient::get(const std::string& key) {
  return ask([key](c10d::Store& store) { return store.get_to_str(key); });
}

void StoreClient::set(const std::string& key, const std::string& value) {
  ask([key, value](c10d::Store& store) { store.set(key, value); });
}

std::string StoreClient::set_once(const std::string& key, const std::string& value) {
  return ask([key, value](c10d::Store& store) { return store.compareSet(key, std::string(), value); });
}

int64_t StoreClient::add(const std::string& key, int64_t number) {
  return ask([key, number](c10d::Store& store) { return store.add(key, number); });
}

}  // namespace settrain
