#include "src/core/ordered_prefetch.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// Work whose length differs from item to item, so that threads finish out of order.
int64_t slow_square(int64_t number) {
  std::this_thread::sleep_for(std::chrono::microseconds((number * 7919) % 300));
  return number * number;
}

}  // namespace

TEST_CASE("items come in order, each made once, for any number of workers") {
  for (const int64_t workers : {1, 2, 5, 16}) {
    for (const int64_t ahead : {1, 3, 64}) {
      std::vector<std::atomic<int>> made(50);
      OrderedPrefetch<int64_t> prefetch(10, 50, workers, ahead, [&](int64_t number) {
        ++made[static_cast<size_t>(number)];
        return slow_square(number);
      });
      for (int64_t number = 10; number < 50; ++number) REQUIRE(prefetch.next() == number * number);
      CHECK_FALSE(prefetch.next().has_value());
      CHECK_FALSE(prefetch.next().has_value());
      for (size_t number = 0; number < made.size(); ++number) CHECK(made[number] == (number < 10 ? 0 : 1));
    }
  }
}

TEST_CASE("an empty range has no items") {
  OrderedPrefetch<int64_t> prefetch(3, 3, 4, 2, slow_square);
  CHECK_FALSE(prefetch.next().has_value());
}

TEST_CASE("workers do not run further ahead than asked") {
  std::atomic<int64_t> begun{0};
  OrderedPrefetch<int64_t> prefetch(0, 1000, 4, 6, [&](int64_t number) {
    ++begun;
    return number;
  });
  for (int64_t taken = 1; taken <= 20; ++taken) {
    prefetch.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(begun <= taken + 6);
  }
}

TEST_CASE("an exception while an item is made arrives in that item's turn, and the next items follow") {
  for (const int64_t workers : {1, 2, 5}) {
    OrderedPrefetch<int64_t> prefetch(0, 20, workers, 4, [](int64_t number) {
      if (number % 7 == 3) throw std::runtime_error("item " + std::to_string(number));
      return slow_square(number);
    });
    for (int64_t number = 0; number < 20; ++number) {
      if (number % 7 == 3) {
        CHECK_THROWS_WITH(prefetch.next(), "item " + std::to_string(number));
      } else {
        CHECK(prefetch.next() == number * number);
      }
    }
    CHECK_FALSE(prefetch.next().has_value());
  }
}

TEST_CASE("it can be given up at any time") {
  for (int64_t taken = 0; taken < 12; ++taken) {
    std::atomic<int> at_work{0};
    {
      OrderedPrefetch<int64_t> prefetch(0, 1000, 3, 5, [&](int64_t number) {
        ++at_work;
        const int64_t made = slow_square(number);
        --at_work;
        return made;
      });
      for (int64_t i = 0; i < taken; ++i) prefetch.next();
    }
    CHECK(at_work == 0);
  }
}

TEST_CASE("items that can only be moved pass through") {
  OrderedPrefetch<std::unique_ptr<int64_t>> prefetch(0, 5, 2, 2,
                                                     [](int64_t n) { return std::make_unique<int64_t>(n); });
  for (int64_t number = 0; number < 5; ++number) CHECK(**prefetch.next() == number);
}

TEST_CASE("a prefetch needs workers and room") {
  CHECK_THROWS_AS(OrderedPrefetch<int64_t>(0, 5, 0, 1, slow_square), std::invalid_argument);
  CHECK_THROWS_AS(OrderedPrefetch<int64_t>(0, 5, 1, 0, slow_square), std::invalid_argument);
}
