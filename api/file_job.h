#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/app.h"
#include "api/frame_connection.h"

namespace api {

/// One operation on files of a context, done by airlock-files there. Nothing of a path is looked at
/// here. Lives until close(), which the events' holder must call in the end.
class FileJob : public std::enable_shared_from_this<FileJob> {
 public:
  /// What the program says; it is the context's own, so anything may come.
  struct Events {
    std::function<void(const wire::Frame&)> on_message;
    /// Once, and nothing after it.
    std::function<void(const Problem&)> on_failed;
    /// All that was sent and had to wait is taken.
    std::function<void()> on_room = [] {};
  };
  /// In the context of `exchange`, until its client is gone. Events come later, never from inside a
  /// call. `outlives_us`: it goes on when this process ends, to clean up after itself.
  static std::shared_ptr<FileJob> start(App& app, Exchange& exchange,
                                        const wire::FileRequest& request, bool outlives_us,
                                        Events events);

  template <class Message>
  void send(const Message& message) {
    if (data_) data_->send(message);
  }
  /// Bytes that the program has not taken yet.
  std::size_t waiting() const { return data_ ? data_->queued() : 0; }

  /// It must say something, or take what waits, within this time: else it has failed.
  void expect(std::chrono::seconds time);
  /// It need not.
  void expect_nothing() { deadline_.cancel(); }
  /// No messages until go_on().
  void hold();
  void go_on();

  /// Ends it: what was not completed is undone. No events come any more. A program that has done
  /// its work has a moment to end by itself, so that the audit log does not call it killed.
  void close();

 private:
  explicit FileJob(App& app) : app_(app), deadline_(app.io), end_deadline_(app.io) {}
  base::Result<void> begin(const wire::FileJob& order, const wire::FileRequest& request,
                           const AskedBy& asked_by);
  void take_answer(const wire::Frame& frame);
  void take_message(const wire::Frame& frame);
  void lose_program();
  void tell_why_not(const wire::NotStarted& refusal);
  void fail(const Problem& problem);
  void let_end();

  App& app_;
  std::string context_;
  Events events_;
  std::unique_ptr<FrameConnection> job_;
  std::unique_ptr<FrameConnection> data_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer end_deadline_;  ///< of let_end()
  std::optional<wire::NotStarted> refusal_;
  bool has_ended_ = false;  ///< as its job
  bool is_silent_ = false;  ///< its socket is closed
  bool has_failed_ = false;
  bool is_closed_ = false;
};

}  // namespace api
