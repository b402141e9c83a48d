// SPDX-License-Identifier: MIT
// peer_spdlog.cpp - spdlog's asynchronous logger as a peer of umd-bench log; loaded when it was built.
#include <chrono>
#include <memory>
#include <thread>

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

extern "C" {
struct bench_peer_log {
    int (*open)(const char *path);
    void (*log3)(int a, int b, int c);
    void (*flush)(void);
    void (*close)(void);
};
__attribute__((visibility("default"))) extern const bench_peer_log bench_peer_spdlog;
}

namespace {
std::shared_ptr<spdlog::logger> logger;

int peer_open(const char *path)
{
    try {
        spdlog::init_thread_pool(8192, 1); // the defaults of spdlog::async_factory
        logger = spdlog::basic_logger_mt<spdlog::async_factory>("peer", path, true);
        logger->set_level(spdlog::level::info);
        return 0;
    } catch (const spdlog::spdlog_ex &) {
        return -1;
    }
}

void peer_log3(int a, int b, int c) { logger->info("queue created id={} size={} depth={}", a, b, c); }

void peer_flush(void)
{
    while (spdlog::thread_pool()->queue_size() > 0)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
}

void peer_close(void)
{
    logger.reset();
    spdlog::shutdown();
}
} // namespace

const bench_peer_log bench_peer_spdlog = { peer_open, peer_log3, peer_flush, peer_close };
